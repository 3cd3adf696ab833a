import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { isMajor, type Major, NODES, withNode } from './nodes.ts';
import { root, run } from './package/run.ts';

/**
 * Runs tests on other versions of Node.js, each side by side. These are the files that are named, or with `--all` those of `npm test`.
 * Without either they are the tests below, which depend on what is Node's own; with `--slow` those that take long as well.
 *
 *     npm run test:nodes
 *     npm run test:nodes -- 22 --all
 *     npm run test:nodes -- 24 test/cli/start.test.ts
 */

/** Permissions and child processes, clusters, HTTP, sockets and DNS, native code, modules and TypeScript, signals, the runner of tests. */
const SELECTION: Readonly<Record<string, string>> = {
  cli: 'bin isolate plugin-modules plugin-new reload signing-backend start status',
  config: 'isolate isolate-calls plugin-packages',
  e2e: 'disconnect http-parser metrics-process stream upstream-faults',
  http: 'connections stream unread',
};
/** They change what node has, and run by themselves. */
const APART = 'child-process ecdsa http-client/answers http-client/faults http-client/names';
/** What takes long runs with `--slow`, on the newest alone. */
const SLOW = ['test/cli/workers.slow.ts', 'test/e2e/isolate.slow.ts'];

/** The selection, in one process as far as it can be: to load the service takes longer than most tests. */
function selected(major: Major): string[] {
  const filesOf = (folder: string, names: string) => names.split(' ').map((name) => `test/${folder}/${name}.test.ts`);
  const files = Object.entries(SELECTION).flatMap(([folder, names]) => filesOf(folder, names));
  const all = JSON.stringify([...files, ...(major === 24 && words.includes('--slow') ? SLOW : [])]);
  const group = join(root, '.cache/nodes', `${major}.mjs`);
  writeFileSync(group, `import { together } from '../../test/support/together.mjs';\nawait together(${all});\n`);
  return [group, ...filesOf('sdk', APART)];
}

const words = process.argv.slice(2);
const majors = words.filter(isMajor).map((word) => Number(word) as Major);
const named = words.filter((word) => word.startsWith('test/'));
const all = words.includes('--all') ? run(root, process.execPath, 'test/support/groups.mjs').trim().split('\n') : named;

/** @returns whether the tests pass; what they said is shown where they do not. */
async function test(major: Major): Promise<boolean> {
  const options = ['--test', '--test-timeout=600000', '--test-force-exit', '--test-concurrency=1'];
  const files = all.length > 0 ? all : selected(major);
  const args = ['--import', './test/support/register.mjs', ...options, '--test-reporter=spec', ...files];
  const child = spawn('node', args, { cwd: root, env: withNode(major), stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  const said = await text(child.stdout);
  const [code]: unknown[] = await ended;
  const counts = said.match(/^ℹ (?:pass|fail|cancelled) \d+$/gm)?.join(' ') ?? '';
  if (code !== 0) console.error(said.slice(Math.max(0, said.lastIndexOf('✖ failing tests:'))));
  console.log(`Node ${NODES[major]}: ${counts}`);
  return code === 0;
}

mkdirSync(join(root, '.cache/nodes'), { recursive: true });
const passed = await Promise.all((majors.length > 0 ? majors : ([22, 24] as const)).map(test));
process.exitCode = passed.includes(false) ? 1 : 0;
