import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Major, withNode } from './nodes.ts';
import {
  compileShown,
  makePluginProject,
  makeServiceProject,
  makeVerifyProject,
  type Projects,
  writePlugin,
} from './package/projects.ts';
import { Background, complain, fail, root, run, runBeside, step } from './package/run.ts';
import { checkFiles, lint, pack } from './package/tarball.ts';

/**
 * Builds the packages, packs them, and holds each tarball to what its users will do with it. Linters of packages look at it, and
 * projects of their own, outside this tree, install it. One project writes a plugin with the SDK alone, and one verifies answers with
 * the verifier alone. One runs the service on plain node with plugins whose effect is in the answers.
 */

const dist = join(root, 'dist');
const folder = mkdtempSync(join(tmpdir(), 'sdp-package-'));

/** The upstream's price, and what is signed: the plugin of the template lets it pass as it is, times 1e18. */
const QUOTE = '{"symbol":"ETHUSD","price":2064.012345}';
const SIGNED = 2_064_012_345_000_000_000_000n;

/** Each package, with the files that it must have. */
const PACKAGES = {
  service: {
    folder: dist,
    files: ['SECURITY.md', 'CHANGELOG.md', 'ARCHITECTURE.md', 'docs/plugins.md', 'test/vectors/receipts.json'],
  },
  verify: { folder: join(dist, 'packages', 'verify'), files: ['verify/index.js', 'verify/index.d.ts'] },
  contracts: { folder: join(dist, 'packages', 'contracts'), files: ['SignedDataQuorum.sol', 'SignedDataReader.sol'] },
  sdk: {
    folder: join(dist, 'packages', 'plugins-sdk'),
    files: ['plugins-sdk/index.d.ts', 'service/testing/alone.d.ts'],
  },
};

/** Packs a package and looks at the tarball. @returns its path. */
async function tarballOf(name: keyof typeof PACKAGES): Promise<string> {
  const { folder: built, files } = PACKAGES[name];
  const packed = pack(built, folder);
  checkFiles(built, packed, files);
  const tarball = join(folder, packed.filename);
  // Linters look at JavaScript.
  if (name !== 'contracts') await lint(tarball);
  const kilobytes = (bytes: number) => `${Math.round(bytes / 1000)} kB`;
  const { size, unpackedSize } = packed;
  console.log(
    `        ${packed.filename}: ${kilobytes(size)} packed, ${kilobytes(unpackedSize)} unpacked, ${packed.files.length} files`,
  );
  return tarball;
}

async function startUpstream(): Promise<Server> {
  const server = createServer((_, response) => response.setHeader('Content-Type', 'application/json').end(QUOTE));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

const PROGRAM = [join('node_modules', '.bin', 'signed-data-proxy'), 'start', '-c', 'config.yaml'];

/** The ways of starting the service that the documents recommend, and the versions of Node.js on which plugins in TypeScript are loaded. */
const WAYS: readonly { readonly shown: string; readonly words: readonly string[]; readonly node?: Major }[] = [
  { shown: 'node_modules/.bin', words: PROGRAM },
  { shown: 'npx -c exec', words: ['npx', '-c', 'exec signed-data-proxy start -c config.yaml'] },
  { shown: 'node_modules/.bin on Node 22', words: PROGRAM, node: 22 },
  { shown: 'node_modules/.bin on Node 24', words: PROGRAM, node: 24 },
];

async function serving(
  projects: Projects,
  { words, node }: (typeof WAYS)[number],
  use: (service: Background) => Promise<void>,
): Promise<void> {
  const upstream = await startUpstream();
  const { port } = upstream.address() as AddressInfo;
  const [program = '', ...args] = words;
  const variables = {
    UPSTREAM: `http://127.0.0.1:${port}`,
    SDK_PROJECT: projects.plugin,
    SERVICE_PRIVATE_KEY: `0x${randomBytes(32).toString('hex')}`,
    ...(node !== undefined && { PATH: String(withNode(node).PATH) }),
  };
  const service = new Background(projects.service, variables, program, ...args);
  try {
    await use(service);
    await service.stop();
  } finally {
    service.child.kill('SIGKILL');
    upstream.close();
    upstream.closeAllConnections();
  }
}

/** Asks the service as installed, and checks what it answers with the package for that alone. */
async function askAndVerify(service: Background, { verify, service: project }: Projects): Promise<void> {
  const url = await service.find(/listening on (http:\S+)/);
  const signer = await service.find(/signer (0x[0-9a-fA-F]{40})/);
  const id = await service.find(/prices\/eth-usd (0x[0-9a-f]{64})/);
  const signed = await runBeside(verify, process.execPath, 'check.js', url, signer, id);
  if (BigInt(signed) !== SIGNED) fail(`signed was ${signed} instead of ${SIGNED}`);
  const asked = await runBeside(verify, process.execPath, 'ask.js', id, '1', `${url}=${signer}`);
  if (asked.trim() !== String(SIGNED)) fail(`ask said ${asked} instead of ${SIGNED}`);
  const post = (endpoint: string, body: string, headers: Record<string, string> = {}) =>
    fetch(`${url}/endpoints/${endpoint}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body,
    });
  const answer = await (await post(id, '{"parameters":{"symbol":" ETHUSD "}}')).text();
  const verifier = ['--import', 'signed-data-proxy/plugins-sdk/register', 'verify.ts', answer, signer, id];
  const same = run(project, process.execPath, ...verifier).trim();
  if (same !== signed) fail(`signed was ${same} instead of ${signed}: ${answer}`);
  await askTenants(await service.find(/prices\/for-tenants (0x[0-9a-f]{64})/), post, service);
  const page = await fetch(url);
  const html = await page.text();
  if (page.status !== 200 || !/^<!doctype html>/i.test(html)) fail(`the explorer answered ${page.status}: ${html}`);
}

/** The plugin that was written with another package than the service: its refusals and context keys are the service's. */
async function askTenants(
  id: string,
  post: (id: string, body: string, headers?: Record<string, string>) => Promise<Response>,
  service: Background,
): Promise<void> {
  const refused = await post(id, '{}');
  const said = `${refused.status} ${refused.headers.get('x-tenants')} ${await refused.text()}`;
  if (said !== '401 ada {"error":"Which tenant?"}') fail(`the plugin's refusal was ${said}`);
  const served = await post(id, '{}', { 'X-Tenant': 'ada' });
  const { status, headers } = served;
  if (status !== 200 || headers.get('x-tenant') !== 'ada')
    fail(`the plugin's answer was ${status}: ${await served.text()}`);
  await service.find(/200 [\d.]+ms .*(client=ada)/);
}

const begin = performance.now();
try {
  await step('build', () => run(root, process.execPath, '--import', 'tsx', 'tools/scripts/build.ts'));
  const service = await step('the service: files, publint, types', () => tarballOf('service'));
  const verify = await step('the verifier: files, publint, types', () => tarballOf('verify'));
  const sdk = await step('the SDK: files, publint, types', () => tarballOf('sdk'));
  await step('the contracts: files, the contract that its page shows', async () =>
    compileShown(folder, await tarballOf('contracts')),
  );
  const projects: Projects = {
    verify: await step('a project with the verifier, its size in a browser', () => makeVerifyProject(folder, verify)),
    plugin: await step('a project with the SDK: a plugin, its types and its test', () =>
      makePluginProject(folder, sdk),
    ),
    service: await step('a project with the service', () => makeServiceProject(folder, service)),
  };
  await step('plugin new, its test, types', () => writePlugin(projects.service));
  for (const way of WAYS) {
    await step(`${way.shown}: plugins, an answer verified, SIGTERM`, () =>
      serving(projects, way, (running) => askAndVerify(running, projects)),
    );
  }
  const packages = readdirSync(join(projects.service, 'node_modules')).length;
  console.log(`${packages} folders in node_modules; ${((performance.now() - begin) / 1000).toFixed(1)} s in all`);
} catch (error) {
  complain(error);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
