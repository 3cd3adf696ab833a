import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Major, NODES, withNode } from './nodes.ts';
import { grouped, root } from './package/run.ts';

/**
 * Runs tests on other versions of Node.js, all versions in parallel: the named files, or the selection below of tests that depend
 * on Node.js itself.
 *
 *     npm run test:nodes
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

const words = process.argv.slice(2);
const majors = [22, 24] as const;
const asked = majors.filter((major) => words.includes(`${major}`));
const named = words.filter((word) => /\.m?[jt]s$/.test(word));
const files = named.length > 0 ? named : selected();

/** Runs the tests on a version. Shows their output if they fail. @returns whether they pass. */
async function test(major: Major): Promise<boolean> {
  const options = ['--test', '--test-timeout=600000', '--test-force-exit', '--test-concurrency=1'];
  const args = ['--import', './test/support/register.mjs', ...options, '--test-reporter=spec', ...files];
  const ended = await promisify(execFile)('node', args, { cwd: root, env: withNode(major), maxBuffer: 2 ** 28 }).then(
    ({ stdout }) => ({ passed: true, stdout }),
    ({ stdout }: { readonly stdout: string }) => ({ passed: false, stdout }),
  );
  const { passed, stdout } = ended;
  if (!passed) console.error(stdout.slice(Math.max(0, stdout.lastIndexOf('✖ failing tests:'))));
  console.log(`Node ${NODES[major]}: ${stdout.match(/^ℹ (?:pass|fail|cancelled) \d+$/gm)?.join(' ') ?? ''}`);
  return passed;
}

const passed = await Promise.all((asked.length > 0 ? asked : majors).map(test));
process.exitCode = passed.includes(false) ? 1 : 0;
