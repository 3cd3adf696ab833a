import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMajor, type Major, NODES, withNode } from './nodes.ts';
import { root } from './package/run.ts';

/**
 * Runs tests on other versions of Node.js, each side by side. These are the files that are named, or with `--all` those of `npm test`.
 * Without either they are the tests below, which depend on what is Node's own.
 *
 *     npm run test:nodes
 *     npm run test:nodes -- 22 --all
 *     npm run test:nodes -- 24 test/cli/start.test.ts
 */

/** What takes long runs on the newest alone. */
const NEWEST = Math.max(...Object.keys(NODES).map(Number));

/** Permissions and child processes, clusters, HTTP, sockets and DNS, native code, modules and TypeScript, signals, the runner of tests. */
const SELECTION: Readonly<Record<string, string>> = {
  cli: 'bin isolate plugin-modules plugin-new reload signing-backend start status workers.slow',
  config: 'isolate isolate-calls plugin-packages',
  e2e: 'disconnect http-parser isolate.slow metrics-process stream upstream-faults',
  http: 'connections stream unread',
  sdk: 'child-process ecdsa host-names http-client/answers http-client/connection http-client/faults',
};

const folder = join(root, '.cache', 'nodes');

/** Files that run the selection in two processes, since to load the service takes longer than most tests; those of the SDK change what node has. */
function selected(major: Major): string[] {
  const { sdk, ...service } = SELECTION;
  const isDue = (member: string) => Number(major) === NEWEST || !member.endsWith('.slow');
  return Object.entries({ service, sdk: { sdk } }).map(([group, folders]) => {
    const files = Object.entries(folders).flatMap(([name, members = '']) =>
      members
        .split(' ')
        .filter(isDue)
        .map((member) => `test/${name}/${member}${member.endsWith('.slow') ? '' : '.test'}.ts`),
    );
    const path = join(folder, `${major}-${group}.mjs`);
    const text = `import { together } from '../../test/support/together.mjs';\nawait together(${JSON.stringify(files)});\n`;
    writeFileSync(path, text);
    return path;
  });
}

const OPTIONS = ['--test', '--test-timeout=600000', '--test-force-exit', '--test-reporter=spec'];

/** The arguments of `node` for the tests of `npm test`, in its groups. */
function everyFile(): string[] {
  const { stdout } = spawnSync(process.execPath, ['test/support/groups.mjs'], { cwd: root, encoding: 'utf8' });
  return stdout.trim().split('\n');
}

/** @returns the exit code. */
async function test(major: Major, files: readonly string[], concurrency: number): Promise<number> {
  const env = withNode(major);
  const log = join(folder, `${major}.log`);
  const output = createWriteStream(log);
  await once(output, 'open');
  const args = ['--import', './test/support/register.mjs', ...OPTIONS, `--test-concurrency=${concurrency}`, ...files];
  const begin = performance.now();
  const child = spawn('node', args, { cwd: root, env, stdio: ['ignore', output, output] });
  const [code]: unknown[] = await once(child, 'close');
  const said = readFileSync(log, 'utf8');
  const count = (what: string) => new RegExp(`^ℹ ${what} (\\d+)$`, 'm').exec(said)?.[1] ?? '?';
  const seconds = ((performance.now() - begin) / 1000).toFixed(0);
  const summary = `Node ${NODES[major]}: ${count('pass')} tests pass, ${count('fail')} fail, ${count('cancelled')} are cancelled; ${seconds} s`;
  if (code === 0) console.log(summary);
  else {
    console.error(said.slice(Math.max(0, said.lastIndexOf('✖ failing tests:'))));
    console.error(
      `${summary}\nTo run one of them by itself: npm run test:nodes -- ${major} test/….test.ts; all output is in ${log}`,
    );
  }
  return code === 0 ? 0 : 1;
}

mkdirSync(folder, { recursive: true });
const words = process.argv.slice(2);
const asked = words.filter(isMajor).map((word) => Number(word) as Major);
const majors = asked.length > 0 ? asked : ([22, 24] as const);
const named = words.filter((word) => !isMajor(word) && word !== '--all');
const asAsked = words.includes('--all') ? everyFile() : named.length > 0 ? named : undefined;
const codes = await Promise.all(
  majors.map((major) => test(major, asAsked ?? selected(major), majors.length > 1 ? 1 : 3)),
);
process.exitCode = Math.max(...codes);
