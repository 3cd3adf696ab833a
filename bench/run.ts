import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import autocannon from 'autocannon';

/**
 * Requests per second of the service against a bare koa server in the same run: A B A B, each on its own core, the load
 * generator and the upstream on the other. `--seconds N` sets how long each turn takes (default 5).
 */
const CONNECTIONS = 32;
const SERVER_CORE = '0';
const OTHER_CORE = '1';
const root = new URL('..', import.meta.url).pathname;

interface Child {
  readonly process: ChildProcess;
  readonly url: string;
  readonly log: string;
}

/** Starts a program on one core; its output goes to a file, because a pipe that nobody reads would block it. */
async function start(folder: string, name: string, core: string, args: string[], env = {}): Promise<Child> {
  const log = join(folder, `${name}.log`);
  const output = await open(log, 'w');
  const command = ['-c', core, process.execPath, '--import', 'tsx', ...args];
  const child = spawn('taskset', command, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', output.fd, output.fd],
  });
  await output.close();
  for (let tries = 0; tries < 200; tries++) {
    const url = /listening on (http:[^\s"]+)/.exec(await readFile(log, 'utf8'))?.[1];
    if (url !== undefined) return { process: child, url, log };
    if (child.exitCode !== null) break;
    await sleep(50);
  }
  throw new Error(`${name} did not start: ${await readFile(log, 'utf8')}`);
}

function configFor(upstream: string): string {
  const endpoint = (name: string, path: string, rest: string) =>
    `      - { name: ${name}, path: ${path}, parameters: [{ name: symbol, required: true }]${rest} }\n`;
  const encoding = ", encoding: { type: int256, path: $.price, times: '1e18' }";
  return `version: '1.0'
server: { port: 0, rateLimit: { max: 1000000000 } }
apis:
  - name: bench
    url: ${upstream}
    auth: { type: apiKey, keys: [benchmark-key-of-16] }
    endpoints:
${endpoint('encoded', '/small', encoding)}${endpoint('raw', '/large', '')}${endpoint('cached', '/small/kept', `${encoding}, cache: { maxAge: 3600000 }`)}`;
}

interface Measured {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
}

async function load(url: string, seconds: number): Promise<Measured> {
  const result = await autocannon({
    url,
    connections: CONNECTIONS,
    duration: seconds,
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': 'benchmark-key-of-16' },
    body: '{"parameters":{"symbol":"ETHUSD"}}',
  });
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${result.non2xx} refusals, ${result.errors} errors at ${url}`);
  return { perSecond: result.requests.average, p50: result.latency.p50, p99: result.latency.p99 };
}

function best(turns: readonly Measured[]): Measured {
  return turns.reduce((a, b) => (b.perSecond > a.perSecond ? b : a));
}

async function main(): Promise<void> {
  const at = process.argv.indexOf('--seconds');
  const seconds = at === -1 ? 5 : Number(process.argv[at + 1]);
  const folder = await mkdtemp(join(tmpdir(), 'signed-data-proxy-bench-'));
  const children: Child[] = [];
  try {
    const upstream = await start(folder, 'upstream', OTHER_CORE, ['bench/upstream.ts']);
    children.push(upstream);
    const config = join(folder, 'config.yaml');
    await writeFile(config, configFor(upstream.url));
    const bare = await start(folder, 'bare-koa', SERVER_CORE, ['bench/bare-koa.ts']);
    children.push(bare);
    const key = `0x${'11'.repeat(32)}`;
    const service = await start(folder, 'service', SERVER_CORE, ['cli/main.ts', 'start', '-c', config], {
      SERVICE_PRIVATE_KEY: key,
      LOG_FORMAT: 'json',
    });
    children.push(service);
    const log = await readFile(service.log, 'utf8');
    const urls = new Map([['bare koa', bare.url]]);
    for (const [, name = '', id = ''] of log.matchAll(/bench\/(\w+) (0x[0-9a-f]{64})/g))
      urls.set(name, `${service.url}/endpoints/${id}`);
    const turns = new Map<string, Measured[]>();
    for (const round of [1, 2]) {
      for (const [name, url] of urls) {
        await load(url, 1);
        turns.set(name, [...(turns.get(name) ?? []), await load(url, seconds)]);
        process.stderr.write(`round ${round}: ${name}\n`);
      }
    }
    const floor = best(turns.get('bare koa') ?? []).perSecond;
    process.stdout.write('| work | requests/s | of bare koa | p50 ms | p99 ms |\n|---|---|---|---|---|\n');
    for (const [name, measured] of turns) {
      const { perSecond, p50, p99 } = best(measured);
      process.stdout.write(
        `| ${name} | ${perSecond.toFixed(0)} | ${(perSecond / floor).toFixed(2)} | ${p50} | ${p99} |\n`,
      );
    }
  } finally {
    for (const child of children) child.process.kill();
    await rm(folder, { recursive: true });
  }
}

await main();
