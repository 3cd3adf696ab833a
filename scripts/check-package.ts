import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';

/**
 * Builds the package, packs it, and holds the tarball to what its users will do with it: linters of packages look at it, and
 * a project of its own, outside this tree, installs it, writes a plugin, checks its types, runs its test, starts the
 * service on plain node with it and verifies an answer whose value the plugin changed.
 */

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');
const folder = mkdtempSync(join(tmpdir(), 'sdp-package-'));
const project = join(folder, 'project');

/** Milliseconds that one program may take. */
const PATIENCE = 240_000;
/** The upstream's price, and what the plugin of the template makes of it, times 1e18. */
const QUOTE = '{"symbol":"ETHUSD","price":2064.012345}';
const SIGNED = 2_064_010_000_000_000_000_000n;

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string; readonly mode: number }[];
}

/** What the surrounding npm and an operator's shell set is nothing that a user has. */
const env = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(?:npm_|INIT_CWD$|NODE_|SERVICE_|LOG_)/i.test(name)),
);

function fail(message: string): never {
  throw new Error(message);
}

/** Runs a program to its end; shows what it said only when it fails. */
function run(cwd: string, program: string, ...args: string[]): string {
  const options = { cwd, env, encoding: 'utf8', timeout: PATIENCE, maxBuffer: 64 * 1024 * 1024 } as const;
  const { status, stdout, stderr, error } = spawnSync(program, args, options);
  if (status === 0) return stdout;
  return fail(`${program} ${args.join(' ')}: ${error?.message ?? `exit code ${status}`}\n${stdout}${stderr}`);
}

async function step<T>(name: string, work: () => T | Promise<T>): Promise<T> {
  const begin = performance.now();
  const result = await work();
  console.log(`${((performance.now() - begin) / 1000).toFixed(1).padStart(5)} s  ${name}`);
  return result;
}

function pack(): Packed {
  const printed: unknown = JSON.parse(run(dist, 'npm', 'pack', '--json', '--pack-destination', folder));
  // npm prints a list, or an object by package name.
  const [packed] = Object.values(Object(printed)) as Packed[];
  return packed ?? fail('npm packed nothing');
}

/** Nothing that only the source tree needs, and nothing that leads nowhere. */
function checkFiles({ files }: Packed): void {
  const names = files.map(({ path }) => path);
  const raw = /^(?:examples|cli\/plugin\/template)\//;
  const odd = names.filter((name) => {
    if (raw.test(name)) return false;
    return (
      /\.map$|\.test\.|(?:^|\/)test\/|^bench\/|^scripts\//.test(name) || (/\.ts$/.test(name) && !/\.d\.ts$/.test(name))
    );
  });
  if (odd.length > 0) fail(`does not belong into the package: ${odd.join(', ')}`);
  const pages = ['README.md', 'LICENSE', 'SECURITY.md', 'CHANGELOG.md', 'docs/plugins.md'];
  const missing = [...pages, 'package.json'].filter((name) => !names.includes(name));
  if (missing.length > 0) fail(`missing in the package: ${missing.join(', ')}`);
  const bin = files.find(({ path }) => path === 'cli/bin.js');
  if (bin?.mode !== 0o755) fail(`cli/bin.js cannot be executed: ${bin?.mode.toString(8)}`);
  const code = names.filter((name) => /\.(?:m?js|d\.ts)$/.test(name) && !raw.test(name));
  const leading = code.filter((name) => {
    return /\/\/# sourceMappingURL=|(?:from |import\()['"]\.[^'"]*\.ts['"]/.test(
      readFileSync(join(dist, name), 'utf8'),
    );
  });
  if (leading.length > 0) fail(`refers to sources that are not there: ${leading.join(', ')}`);
}

async function lint(tarball: string): Promise<void> {
  const bytes = readFileSync(tarball);
  const data = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const { messages, pkg } = await publint({ pack: { tarball: data as ArrayBuffer }, strict: true });
  if (messages.length > 0) fail(`publint:\n${messages.map((message) => formatMessage(message, pkg)).join('\n')}`);
}

/** The files in TypeScript that the documents show; tests run them, and here their types are checked. */
function copyShownFiles(): void {
  const page = readFileSync(join(root, 'docs', 'plugins.md'), 'utf8');
  for (const [, name = '', text = ''] of page.matchAll(/^```ts file=(\S+)\n(.*?)^```$/gms)) {
    writeFileSync(join(project, name), text);
  }
}

function install(tarball: string): void {
  cpSync(join(root, 'test', 'package', 'consumer'), project, { recursive: true });
  writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }');
  copyShownFiles();
  const { devDependencies }: { devDependencies: Record<string, string> } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  );
  const tools = ['typescript', '@types/node'].map((name) => `${name}@${devDependencies[name]}`);
  run(project, 'npm', 'install', '--prefer-offline', '--no-audit', '--no-fund', tarball, ...tools);
}

function writePlugin(): void {
  run(project, 'npx', 'signed-data-proxy', '--help');
  const said = run(project, 'npx', 'signed-data-proxy', 'plugin', 'new', 'my-plugin');
  const [, command] = /^ {2}(node --import .*)$/m.exec(said) ?? fail(`plugin new says no command:\n${said}`);
  const [program = '', ...args] = command?.split(' ') ?? [];
  run(project, program, ...args);
  const tried = run(project, 'npx', 'signed-data-proxy', 'plugin', 'test', 'my-plugin.ts');
  const expected = 'changed data.price: 2064.012345 → 2064.01';
  if (!tried.includes(expected)) fail(`plugin test did not say "${expected}":\n${tried}`);
}

async function startUpstream(): Promise<Server> {
  const server = createServer((_, response) => response.setHeader('Content-Type', 'application/json').end(QUOTE));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** Starts the service as installed, asks it once, stops it. */
async function serveAndVerify(): Promise<void> {
  const upstream = await startUpstream();
  const { port } = upstream.address() as AddressInfo;
  const service = spawn(join(project, 'node_modules', '.bin', 'signed-data-proxy'), ['start', '-c', 'config.yaml'], {
    cwd: project,
    env: { ...env, UPSTREAM: `http://127.0.0.1:${port}`, SERVICE_PRIVATE_KEY: `0x${randomBytes(32).toString('hex')}` },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(service, 'close');
  try {
    let said = '';
    for (const stream of [service.stdout, service.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        said += text;
      });
    }
    const find = async (pattern: RegExp): Promise<string> => {
      const end = Date.now() + 30_000;
      while (Date.now() < end && service.exitCode === null) {
        const found = pattern.exec(said)?.[1];
        if (found !== undefined) return found;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return fail(`the service did not say ${pattern}:\n${said}`);
    };
    const url = await find(/listening on (http:\S+)/);
    const signer = await find(/signer (0x[0-9a-fA-F]{40})/);
    const id = await find(/prices\/eth-usd (0x[0-9a-f]{64})/);
    const response = await fetch(`${url}/endpoints/${id}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"parameters":{"symbol":" ETHUSD "}}',
    });
    const answer = await response.text();
    const verifier = ['--import', 'signed-data-proxy/plugins-sdk/register', 'verify.ts', answer, signer, id];
    const signed = run(project, process.execPath, ...verifier).trim();
    if (BigInt(signed) !== SIGNED) fail(`signed was ${signed} instead of ${SIGNED}: ${answer}`);
    const page = await fetch(url);
    const html = await page.text();
    if (page.status !== 200 || !/^<!doctype html>/i.test(html)) fail(`the explorer answered ${page.status}: ${html}`);
    service.kill('SIGTERM');
    const [code] = await ended;
    if (code !== 0) fail(`the service ended with exit code ${code}:\n${said}`);
  } finally {
    service.kill('SIGKILL');
    upstream.close();
    upstream.closeAllConnections();
  }
}

const begin = performance.now();
try {
  await step('build', () => run(root, process.execPath, '--import', 'tsx', 'scripts/build.ts'));
  const packed = await step('pack', pack);
  const tarball = join(folder, packed.filename);
  await step('no stray files', () => checkFiles(packed));
  await step('publint', () => lint(tarball));
  const attw = join(root, 'node_modules', '.bin', 'attw');
  await step('are the types wrong', () => run(root, attw, tarball, '--profile', 'esm-only'));
  await step('install in a new project', () => install(tarball));
  await step('plugin new, its test, plugin test', writePlugin);
  await step('tsc', () => run(project, join(project, 'node_modules', '.bin', 'tsc'), '-p', project));
  await step('service with the plugin, an answer verified', serveAndVerify);
  const packages = readdirSync(join(project, 'node_modules')).length;
  const seconds = ((performance.now() - begin) / 1000).toFixed(1);
  const kilobytes = (bytes: number) => `${Math.round(bytes / 1000)} kB`;
  console.log(
    `${packed.filename}: ${kilobytes(packed.size)} packed, ${kilobytes(packed.unpackedSize)} unpacked, ` +
      `${packed.files.length} files, ${packages} folders in node_modules; ${seconds} s in all`,
  );
} catch (error) {
  console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
