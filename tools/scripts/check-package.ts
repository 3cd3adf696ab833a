import { randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launch, type Running } from '../../test/cli/run.ts';
import { filesOf } from '../../test/support/docs.ts';
import { type Major, withNode } from './nodes.ts';
import { complain, fail, root, run, step } from './package/run.ts';
import { tarballOf } from './package/tarball.ts';

/**
 * Builds and packs the packages, installs them into a project outside this tree, and uses them there as their users do: writes
 * plugins, checks answers, compiles a contract, and runs the service on each version of Node.js.
 */

/** The upstream's answer, and the value that is signed: its price times 1e18, which the template's plugin leaves unchanged. */
const QUOTE = '{"symbol":"ETHUSD","price":2064.012345}';
const SIGNED = 2_064_012_345_000_000_000_000n;
const UPSTREAM = `const server = require('node:http').createServer((_, response) =>
  response.setHeader('Content-Type', 'application/json').end('${QUOTE}'));
server.listen(0, '127.0.0.1', () => console.log('listening on http://127.0.0.1:' + server.address().port));`;

const read = (...path: string[]) => readFileSync(join(root, ...path), 'utf8');

const { dependencies, devDependencies }: Record<string, Record<string, string>> = JSON.parse(read('package.json'));
const versions = { ...dependencies, ...devDependencies };

/** How `npm install` runs in the projects. */
const QUIETLY = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'];

/** The packages by their folders in `dist/`, with files that each must contain. */
const PACKAGES = {
  '.': ['SECURITY.md', 'CHANGELOG.md', 'ARCHITECTURE.md', 'docs/plugins.md', 'test/vectors/receipts.json'],
  'packages/verify': ['verify/index.js', 'verify/index.d.ts'],
  'packages/contracts': ['SignedDataQuorum.sol', 'SignedDataReader.sol'],
  'packages/plugins-sdk': ['plugins-sdk/index.d.ts', 'service/testing/alone.d.ts'],
};

/** Makes a project with all packages, their users' tools, and files of tests and pages, in a folder for each package. */
function makeProject(path: string, tarballs: readonly string[]): void {
  const files = {
    '.': ['test/package/consumer', 'docs/plugins.md'],
    verify: ['tools/packages/verify/README.md'],
    plugin: ['test/package/plugin', 'tools/packages/plugins-sdk/README.md'],
    contracts: ['tools/packages/contracts/README.md'],
  };
  for (const [folder, sources] of Object.entries(files)) {
    mkdirSync(join(path, folder), { recursive: true });
    for (const source of sources) {
      if (!source.endsWith('.md')) cpSync(join(root, source), join(path, folder), { recursive: true });
      else
        for (const [name, text] of filesOf(read(source)))
          if (/\.(?:[jt]s|sol)$/.test(name)) writeFileSync(join(path, folder, name), text);
    }
  }
  writeFileSync(join(path, 'package.json'), '{ "private": true, "type": "module" }');
  const tools = ['typescript', 'tsx', '@types/node', 'solc'].map((tool) => `${tool}@${versions[tool]}`);
  run(path, 'npm', 'install', ...QUIETLY, ...tarballs, ...tools);
}

function compileShown(folder: string): void {
  const places = ['--base-path', '.', '--include-path', '../node_modules'];
  run(folder, '../node_modules/.bin/solcjs', 'Consumer.sol', '--bin', ...places);
  const made = readFileSync(join(folder, 'Consumer_sol_Consumer.bin'), 'utf8');
  if (!/^60[0-9a-f]{1000,}$/.test(made)) fail(`solc made ${made.slice(0, 20)}… of Consumer.sol`);
}

/** Tests the plugins of pages, one of `plugin new`, and one that would not work with a second copy of the SDK. */
function testPlugins(project: string): void {
  const said = run(project, 'npx', 'signed-data-proxy', 'plugin', 'new', 'my-plugin');
  const [, command] = /^ {2}(node --import .*)$/m.exec(said) ?? fail(`plugin new says no command:\n${said}`);
  run(project, 'sh', '-c', command ?? '');
  const plugin = join(project, 'plugin');
  run(plugin, process.execPath, '--import', 'tsx', '--test', 'floor.test.ts', 'tenants.trial.ts');
  for (const folder of [project, plugin]) run(folder, join(project, 'node_modules/.bin/tsc'), '-p', '.');
}

/** Tests a plugin of the page of the SDK's package in a project that has this package alone. */
function testAlone(project: string, sdk: string): void {
  mkdirSync(project);
  for (const [name, text] of filesOf(read('tools/packages/plugins-sdk/README.md')))
    if (name.endsWith('.ts')) writeFileSync(join(project, name), text);
  writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }');
  run(project, 'npm', 'install', ...QUIETLY, sdk, `tsx@${versions.tsx}`);
  run(project, process.execPath, '--import', 'tsx', '--test', 'floor.test.ts');
}

/** Starts the installed service, checks an answer of it with the package for verification, and stops it. */
async function serve(project: string, node: Major | undefined): Promise<void> {
  const started: (() => Promise<void>)[] = [];
  const lifetime = { after: (end: () => Promise<void>) => void started.push(end) };
  const upstream = launch(lifetime, process.execPath, ['-e', UPSTREAM], { cwd: project });
  const env = {
    UPSTREAM: await found(upstream, /listening on (http:\S+)/),
    SDK_PROJECT: join(project, 'plugin'),
    SERVICE_PRIVATE_KEY: `0x${randomBytes(32).toString('hex')}`,
    ...(node !== undefined && { PATH: String(withNode(node).PATH) }),
  };
  const args = ['start', '-c', 'config.yaml'];
  const service = launch(lifetime, 'node_modules/.bin/signed-data-proxy', args, { cwd: project, env });
  try {
    const url = await found(service, /listening on (http:\S+)/);
    const signer = await found(service, /signer (0x[0-9a-fA-F]{40})/);
    const id = await found(service, /prices\/eth-usd (0x[0-9a-f]{64})/);
    const verify = join(project, 'verify');
    const signed = run(verify, process.execPath, 'check.js', url, signer, id).trim();
    const asked = run(verify, process.execPath, 'ask.js', id, '1', `${url}=${signer}`).trim();
    if (BigInt(signed) !== SIGNED || asked !== String(SIGNED)) fail(`signed was ${signed}, asked ${asked}`);
    const answer = await (await post(`${url}/endpoints/${id}`, '{"parameters":{"symbol":" ETHUSD "}}')).text();
    const verifier = ['--import', 'signed-data-proxy/plugins-sdk/register', 'verify.ts', answer, signer, id];
    const same = run(project, process.execPath, ...verifier).trim();
    if (same !== signed) fail(`signed was ${same} instead of ${signed}: ${answer}`);
    await askTenants(`${url}/endpoints/${await found(service, /prices\/for-tenants (0x[0-9a-f]{64})/)}`, service);
    const html = await (await fetch(url)).text();
    if (!/^<!doctype html>/i.test(html)) fail(`the explorer answered ${html}`);
    service.child.kill('SIGTERM');
    const { code, stdout, stderr } = await service.ended;
    if (code !== 0 || !/INFO stopped\s*$/.test(stdout)) fail(`the service ended with ${code}:\n${stdout}${stderr}`);
  } finally {
    await Promise.all(started.map((end) => end()));
  }
}

function post(url: string, body: string, headers = {}): Promise<Response> {
  return fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body });
}

/** Waits for a program's output to match, and returns the first group. */
async function found({ output }: Running, pattern: RegExp): Promise<string> {
  return (await output(pattern))[1] ?? '';
}

/** Checks a plugin that was written with the package of the SDK alone: its refusals and context keys are the service's own. */
async function askTenants(url: string, service: Running): Promise<void> {
  const refused = await post(url, '{}');
  const said = `${refused.status} ${refused.headers.get('x-tenants')} ${await refused.text()}`;
  if (said !== '401 ada {"error":"Which tenant?"}') fail(`the plugin's refusal was ${said}`);
  const served = await post(url, '{}', { 'X-Tenant': 'ada' });
  if (served.status !== 200 || served.headers.get('x-tenant') !== 'ada')
    fail(`the plugin's answer was ${served.status}: ${await served.text()}`);
  await service.output(/200 [\d.]+ms .*client=ada/);
}

const folder = mkdtempSync(join(tmpdir(), 'sdp-package-'));
const project = join(folder, 'project');
try {
  await step('build', () => run(root, process.execPath, '--import', 'tsx', 'tools/scripts/build.ts'));
  const tarballs: string[] = [];
  for (const [name, files] of Object.entries(PACKAGES)) {
    const built = join(root, 'dist', name);
    tarballs.push(await step(`pack ${name}: files, links, publint, types`, () => tarballOf(built, folder, files)));
  }
  await step('a project with all packages', () => makeProject(project, tarballs));
  await step('a contract', () => compileShown(join(project, 'contracts')));
  await step('plugin new; plugins, their tests and types', () => testPlugins(project));
  await step('a plugin of the SDK alone', () => testAlone(join(folder, 'alone'), tarballs.at(-1) ?? ''));
  for (const node of [undefined, 22, 24] as const)
    await step(`${node ?? 'this'} Node: the service, an answer verified, SIGTERM`, () => serve(project, node));
} catch (error) {
  complain(error);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
