import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, it, type TestContext } from 'node:test';
import { launch, type Running } from '../../test/cli/run.ts';
import { filesOf } from '../../test/support/docs.ts';
import { withNode } from './nodes.ts';
import { fail, root, run } from './package/run.ts';
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

const { dependencies, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const versions: Readonly<Record<string, string>> = { ...dependencies, ...devDependencies };

const folder = mkdtempSync(join(tmpdir(), 'sdp-package-'));
const project = join(folder, 'project');
const alone = join(folder, 'alone');
after(() => rmSync(folder, { recursive: true, force: true }));

/** The packages by their folders in `dist/`. */
const PACKAGES = ['.', 'packages/verify', 'packages/contracts', 'packages/plugins-sdk'];
const SDK_PAGE = 'tools/packages/plugins-sdk/README.md';

/** Makes a folder with the code that a page shows. */
function writeShown(path: string, page: string): void {
  mkdirSync(path, { recursive: true });
  for (const [name, text] of filesOf(readFileSync(join(root, page), 'utf8')))
    if (/\.(?:[jt]s|sol)$/.test(name)) writeFileSync(join(path, name), text);
}

function install(path: string, packages: readonly string[], tools: readonly string[]): void {
  writeFileSync(join(path, 'package.json'), '{ "private": true, "type": "module" }');
  const wanted = [...packages, ...tools.map((tool) => `${tool}@${versions[tool]}`)];
  run(path, 'npm', 'install', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', ...wanted);
}

/** Makes a project with all packages and their users' tools, and a folder for the users of each. */
function makeProject(tarballs: readonly string[]): void {
  writeShown(project, 'docs/plugins.md');
  writeShown(join(project, 'verify'), 'tools/packages/verify/README.md');
  writeShown(join(project, 'contracts'), 'tools/packages/contracts/README.md');
  writeShown(join(project, 'plugin'), SDK_PAGE);
  cpSync(join(root, 'test/package/consumer'), project, { recursive: true });
  cpSync(join(root, 'test/package/plugin'), join(project, 'plugin'), { recursive: true });
  install(project, tarballs, ['typescript', 'tsx', '@types/node', 'solc']);
}

function compileShown(): void {
  const contracts = join(project, 'contracts');
  const places = ['--base-path', '.', '--include-path', '../node_modules'];
  run(contracts, '../node_modules/.bin/solcjs', 'Consumer.sol', '--bin', ...places);
  assert.match(readFileSync(join(contracts, 'Consumer_sol_Consumer.bin'), 'utf8'), /^60[0-9a-f]{1000,}$/);
}

/** Tests the plugins of pages, one of `plugin new`, and one that would not work with a second copy of the SDK. */
function testPlugins(): void {
  const said = run(project, 'npx', 'signed-data-proxy', 'plugin', 'new', 'my-plugin');
  const [, command = ''] = /^ {2}(node --import .*)$/m.exec(said) ?? fail(`plugin new says no command:\n${said}`);
  run(project, 'sh', '-c', command);
  const plugin = join(project, 'plugin');
  run(plugin, process.execPath, '--import', 'tsx', '--test', 'floor.test.ts', 'tenants.trial.ts');
  for (const path of [project, plugin]) run(path, join(project, 'node_modules/.bin/tsc'), '-p', '.');
}

/** Tests a plugin of the page of the SDK's package in a project that has this package alone. */
function testAlone(sdk: string): void {
  writeShown(alone, SDK_PAGE);
  install(alone, [sdk], ['tsx']);
  run(alone, process.execPath, '--import', 'tsx', '--test', 'floor.test.ts');
}

/** Starts the installed service, checks an answer of it with the package for verification, and stops it. */
async function serve(t: TestContext, node: number | undefined): Promise<void> {
  const upstream = launch(t, process.execPath, ['-e', UPSTREAM], { cwd: project });
  const env = {
    UPSTREAM: await found(upstream, /listening on (http:\S+)/),
    SDK_PROJECT: join(project, 'plugin'),
    SERVICE_PRIVATE_KEY: `0x${randomBytes(32).toString('hex')}`,
    ...(node !== undefined && { PATH: String(withNode(node).PATH) }),
  };
  const args = ['start', '-c', 'config.yaml'];
  const service = launch(t, 'node_modules/.bin/signed-data-proxy', args, { cwd: project, env });
  const url = await found(service, /listening on (http:\S+)/);
  const signer = await found(service, /signer (0x[0-9a-fA-F]{40})/);
  const id = await found(service, /prices\/eth-usd (0x[0-9a-f]{64})/);
  const answer = await (await post(`${url}/endpoints/${id}`, '{"parameters":{"symbol":" ETHUSD "}}')).text();
  const programs = [
    ['verify/check.js', url, signer, id],
    ['verify/ask.js', id, '1', `${url}=${signer}`],
    ['--import', 'signed-data-proxy/plugins-sdk/register', 'verify.ts', answer, signer, id],
  ];
  for (const words of programs) assert.equal(BigInt(run(project, process.execPath, ...words)), SIGNED);
  await askTenants(`${url}/endpoints/${await found(service, /prices\/for-tenants (0x[0-9a-f]{64})/)}`, service);
  assert.match(await (await fetch(url)).text(), /^<!doctype html>/i);
  const { code, stdout, stderr } = await service.stop();
  assert.equal(code, 0, stderr);
  assert.match(stdout, /INFO stopped\s*$/);
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
  const said = [refused.status, refused.headers.get('x-tenants'), await refused.text()];
  assert.deepEqual(said, [401, 'ada', '{"error":"Which tenant?"}']);
  const served = await post(url, '{}', { 'X-Tenant': 'ada' });
  assert.deepEqual([served.status, served.headers.get('x-tenant')], [200, 'ada']);
  await service.output(/200 [\d.]+ms .*client=ada/);
}

const tarballs: string[] = [];
it('build', () => void run(root, 'npm', 'run', '-s', 'build'));
for (const name of PACKAGES)
  it(`pack ${name}: files, links, publint, types`, async () => {
    tarballs.push(await tarballOf(join(root, 'dist', name), folder));
  });
it('a project with all packages', () => makeProject(tarballs));
it('a contract', compileShown);
it('plugin new; plugins, their tests and types', testPlugins);
it('a plugin of the SDK alone', () => testAlone(tarballs.at(-1) ?? ''));
for (const node of [undefined, 22, 24])
  it(`${node ?? 'this'} Node: the service, an answer verified, SIGTERM`, (t) => serve(t, node));
