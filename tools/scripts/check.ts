import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Types, lint, walls, and the tests nearest to what has changed since `main`: what to run before each commit.
 *
 *     npm run check
 */

const root = fileURLToPath(new URL('../..', import.meta.url));

/** More would take longer than a minute. `npm test` runs them all. */
const MOST_TESTS = 8;
const ALWAYS = ['test/walls.test.ts', 'test/sdk/surface.test.ts'];
const GROUP = '.cache/tests/check.mjs';

function git(...args: string[]): string[] {
  const { stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  return stdout.split('\n').filter((line) => line !== '');
}

/** The files that a file names in quotes, to import or to read. */
function namedBy(file: string, files: ReadonlySet<string>): string[] {
  const quoted = readFileSync(join(root, file), 'utf8').matchAll(/['"`]([\w./-]+)['"`]/g);
  const paths = [...quoted].map(([, path = '']) =>
    path.startsWith('.') ? relative(root, resolve(root, dirname(file), path)) : path,
  );
  return paths.filter((path) => files.has(path));
}

/** What a file is about: its name, or that of the folder that it is the front of. */
function subjectOf(file: string): string {
  return basename(/\/index\.\w+$/.test(file) ? dirname(file) : file).replace(/\..*/, '');
}

/** Tests that lead to a changed file: those with its name first, then the nearest, since what is far away is tested by many. */
function testsOf(changed: readonly string[]): string[] {
  const files = new Set(git('ls-files', '--cached', '--others', '--exclude-standard'));
  const users = new Map<string, string[]>();
  for (const file of files) {
    if (!/\.(?:ts|m?js)$/.test(file)) continue;
    for (const named of namedBy(file, files)) users.set(named, [...(users.get(named) ?? []), file]);
  }
  // A set goes on with what is added while it is walked.
  const reached = new Set(changed.filter((file) => files.has(file)));
  for (const file of reached) for (const user of users.get(file) ?? []) reached.add(user);
  const tests = [...reached].filter((file) => file.endsWith('.test.ts') && !ALWAYS.includes(file));
  const subjects = changed.map(subjectOf);
  const isNamed = (file: string) => subjects.some((subject) => file.includes(subject));
  return tests.toSorted((one, other) => Number(isNamed(other)) - Number(isNamed(one)));
}

/** @returns whether it ended well. */
async function run(program: string, ...args: string[]): Promise<boolean> {
  const [code]: unknown[] = await once(spawn(program, args, { cwd: root, stdio: 'inherit' }), 'close');
  return code === 0;
}

const [base = 'HEAD'] = git('merge-base', 'HEAD', 'main');
const changed = [...git('diff', '--name-only', base), ...git('ls-files', '--others', '--exclude-standard')];
const found = testsOf(changed);
const chosen = [...ALWAYS, ...found.slice(0, MOST_TESTS)];
console.log(`${changed.length} files differ from main; ${found.length} test files lead to them, the nearest run:`);
console.log(chosen.map((file) => `  ${file}`).join('\n'));

mkdirSync(join(root, dirname(GROUP)), { recursive: true });
const text = `import { together } from '../../test/support/together.mjs';\nawait together(${JSON.stringify(chosen)});\n`;
writeFileSync(join(root, GROUP), text);
const sound = await Promise.all([run('npm', 'run', '-s', 'typecheck'), run('npm', 'run', '-s', 'lint')]);
const passed = await run('npm', 'run', '-s', 'test:one', '--', GROUP);
process.exitCode = passed && !sound.includes(false) ? 0 : 1;
