import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { basename, dirname } from 'node:path';
import { grouped, root } from './package/run.ts';

/** Checks types, lint and walls, and runs the tests nearest to the changes since `main`: `npm run check` before each commit. */

/** Most test files that are run: more would take longer than half a minute. `npm test` runs them all. */
const MOST_TESTS = 10;
const ALWAYS = ['test/walls.test.ts', 'test/sdk/surface.test.ts'];
/** Tests whose cases are text files, with the files that they test. */
const CORPORA = {
  'test/config/cases/*.test.ts': /^(?:test\/config\/cases|config)\//,
  'test/*/transcripts*.test.ts': /^(?:test\/\w+\/transcripts|cli)\//,
};

const git = (...args: string[]) => spawnSync('git', args, { cwd: root, encoding: 'utf8' }).stdout.match(/.+/g) ?? [];

/** Returns the tests of a file: of its corpus, with its name (for an index, that of its folder), or with an import of it. */
function testsOf(file: string): string[] {
  const subject = basename(/\/index\.\w+$/.test(file) ? dirname(file) : file).replace(/\..*/, '');
  const importers = git('grep', '-lF', `../${file}'`, '--', 'test/*.test.ts');
  const runners = Object.entries(CORPORA).flatMap(([names, on]) => (on.test(file) ? git('ls-files', names) : []));
  return [...git('ls-files', '-co', '--exclude-standard', `test/*${subject}*.test.ts`), ...importers, ...runners];
}

async function run(...args: string[]): Promise<boolean> {
  const [code]: unknown[] = await once(spawn('npm', ['run', '-s', ...args], { cwd: root, stdio: 'inherit' }), 'close');
  return code === 0;
}

const [base = 'HEAD'] = git('merge-base', 'HEAD', 'main');
const changed = [...git('diff', '--name-only', base), ...git('ls-files', '--others', '--exclude-standard')];
const near = [...new Set([...ALWAYS, ...changed.flatMap(testsOf)])];
console.log(
  `${changed.length} files differ from main; ${near.length} test files are near them, of which the first run`,
);
const tests = grouped(2, near.slice(0, MOST_TESTS));
const sound = await Promise.all([run('typecheck'), run('lint'), run('test:one', '--', ...tests)]);
process.exitCode = sound.includes(false) ? 1 : 0;
