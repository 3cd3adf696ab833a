import { spawnSync } from 'node:child_process';
import { withNode } from './nodes.ts';
import { grouped, root } from './package/run.ts';

/**
 * Runs tests on another version of Node.js: the named files, or the selection below of tests that depend on Node.js itself.
 *
 *     npm run test:nodes -- 22
 *     npm run test:nodes -- 22 $(node test/support/groups.mjs)
 *     npm run test:nodes -- 24 test/cli/start.test.ts
 */

/** Tests of permissions, processes, clusters, HTTP, sockets, DNS, native code, modules, TypeScript, signals, test runner. */
const SELECTION: Readonly<Record<string, string>> = {
  cli: 'bin isolate plugin-modules plugin-new reload signing-backend start status transcripts transcripts-config transcripts-values',
  config: 'cases/stand-ins isolate isolate-calls plugin-packages',
  e2e: 'disconnect http-parser metrics-process stream upstream-answers upstream-faults',
  http: 'connections stream unread',
  import: 'transcripts transcripts-choices',
};
/** Tests that change node's own objects, so each runs in a process of its own. */
const APART = 'child-process ecdsa http-client/answers http-client/faults';
/** Returns the selection, with most tests in one process: loading the service takes longer than most of them. */
function selected(): string[] {
  const filesOf = (folder: string, names: string) => names.split(' ').map((name) => `test/${folder}/${name}.test.ts`);
  const files = Object.entries(SELECTION).flatMap(([folder, names]) => filesOf(folder, names));
  return [...grouped(1, files), ...filesOf('sdk', APART)];
}

const [major = '', ...named] = process.argv.slice(2);
const files = named.length > 0 ? named : selected();
const options = ['--test', '--test-timeout=600000', '--test-force-exit', '--test-concurrency=1'];
const args = ['--import', './test/support/register.mjs', ...options, '--test-reporter=spec', ...files];
const { status } = spawnSync('node', args, { cwd: root, env: withNode(major), stdio: 'inherit' });
process.exitCode = status ?? 1;
