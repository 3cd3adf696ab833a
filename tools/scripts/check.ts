import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { root } from './package/run.ts';

/** Types, lint, walls, and the tests nearest to what has changed since `main`: what to run before each commit; `npm run check`. */

/** More would take longer than a minute. `npm test` runs them all. */
const MOST_TESTS = 8;
const ALWAYS = ['test/walls.test.ts', 'test/sdk/surface.test.ts'];
const GROUP = '.cache/tests/check.mjs';

function git(...args: string[]): string[] {
  const { stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  return stdout.split('\n').filter((line) => line !== '');
}

/** What a file is about: its name, or that of the folder that it is the front of. */
function subjectOf(file: string): string {
  return basename(/\/index\.\w+$/.test(file) ? dirname(file) : file).replace(/\..*/, '');
}

/** Tests that are changed, have the name of a changed file, or import one. */
function testsOf(changed: readonly string[]): string[] {
  const tests = git('ls-files', '--cached', '--others', '--exclude-standard', 'test/*.test.ts');
  const subjects = changed.map(subjectOf);
  const near = tests.filter((test) => changed.includes(test) || subjects.some((subject) => test.includes(subject)));
  const importers = changed.flatMap((file) => git('grep', '-lF', `../${file}'`, '--', 'test/*.test.ts'));
  return [...new Set([...near, ...importers])].filter((test) => !ALWAYS.includes(test));
}

const run = (...args: string[]) =>
  spawnSync('npm', ['run', '-s', ...args], { cwd: root, stdio: 'inherit' }).status === 0;

const [base = 'HEAD'] = git('merge-base', 'HEAD', 'main');
const changed = [...git('diff', '--name-only', base), ...git('ls-files', '--others', '--exclude-standard')];
const found = testsOf(changed);
const chosen = [...ALWAYS, ...found.slice(0, MOST_TESTS)];
console.log(`${changed.length} files differ from main; ${found.length} test files are near them, the first run:`);
console.log(chosen.map((file) => `  ${file}`).join('\n'));
mkdirSync(join(root, dirname(GROUP)), { recursive: true });
const text = `import { together } from '../../test/support/together.mjs';\nawait together(${JSON.stringify(chosen)});\n`;
writeFileSync(join(root, GROUP), text);
const sound = [run('typecheck'), run('lint'), run('test:one', '--', GROUP)];
process.exitCode = sound.includes(false) ? 1 : 0;
