import { copyFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { verifyResponse } from '../verify/index.ts';
import { largeConfig, measuredConfig } from './configs.ts';
import { cpuShares } from './cpu-share.ts';
import { load, once, type Turn } from './load.ts';
import { type ServerProcess, startServer } from './server-process.ts';

/**
 * Measures the service against servers that do the same work, or none, on the same stack in the same run.
 * `bench/README.md` says how to read what it prints.
 */

const { values: options } = parseArgs({
  options: {
    /** Seconds of each turn. */
    seconds: { type: 'string', default: '2' },
    /** How often each server has its turn. */
    rounds: { type: 'string', default: '9' },
    /** Requests before resident memory is read, in all. */
    requests: { type: 'string', default: '200000' },
    /** Leaves `service.cpuprofile` in the working directory. */
    profile: { type: 'boolean', default: false },
  },
});
const SERVER = 0;
const OTHERS = 1;
const seconds = Number(options.seconds);
const dist = fileURLToPath(new URL('..', import.meta.url));
const root = fileURLToPath(new URL('../..', import.meta.url));
const env = { SERVICE_PRIVATE_KEY: `0x${'11'.repeat(32)}`, LOG_FORMAT: 'json' };

interface Measured {
  readonly name: string;
  readonly server: ServerProcess;
  readonly url: string;
}

const folder = await mkdtemp(join(tmpdir(), 'signed-data-proxy-bench-'));
const servers: ServerProcess[] = [];

async function start(name: string, core: number, args: readonly string[], more: Record<string, string> = {}) {
  const server = await startServer({ name, core, args, env: { ...env, ...more }, folder });
  servers.push(server);
  return server;
}

async function startService(name: string, config: string, nodeOptions: readonly string[] = []) {
  const file = join(folder, `${name}.yaml`);
  await writeFile(file, config);
  const server = await start(name, SERVER, [...nodeOptions, join(dist, 'cli/main.js'), 'start', '-c', file]);
  const ids = (await readFile(server.log, 'utf8')).matchAll(/bench\/(\w+) (0x[0-9a-f]{64})/g);
  return {
    ...server,
    urls: Object.fromEntries([...ids].map(([, endpoint, id]) => [endpoint, `${server.url}/endpoints/${id}`])),
  };
}

/** What is fast must be right first. */
async function verified(url: string): Promise<void> {
  const result = verifyResponse(await once(url), { node: null });
  if (!result.ok) throw new Error(`${url}: ${result.message}`);
}

/** A turn with the microseconds of CPU that the server used for each request. */
interface Measurement extends Turn {
  readonly cpu: number;
}

async function turnOf({ server, url }: Measured): Promise<Measurement> {
  const before = await server.cpu();
  const turn = await load(url, { duration: seconds });
  return { ...turn, cpu: ((await server.cpu()) - before) / turn.requests };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

/** What is measured against what. They take turns, so that both have the same pauses: V8 gives up memory and code in them. */
async function pair(against: Measured, work: Measured): Promise<void> {
  const turns: { readonly own: Measurement; readonly other: Measurement }[] = [];
  for (const { url } of [against, work]) await load(url, { duration: 2 });
  while (turns.length < Number(options.rounds)) {
    // Either is the first as often as the second.
    const first = turns.length % 2 === 0 ? await turnOf(against) : undefined;
    const own = await turnOf(work);
    turns.push({ own, other: first ?? (await turnOf(against)) });
  }
  const ratio = (read: (turn: (typeof turns)[number]) => number) => median(turns.map(read)).toFixed(2);
  const speed = ratio(({ own, other }) => own.perSecond / other.perSecond);
  const cpu = ratio(({ own, other }) => other.cpu / own.cpu);
  row(
    against.name,
    turns.map(({ other }) => other),
  );
  row(
    work.name,
    turns.map(({ own }) => own),
    [speed, cpu],
  );
}

function row(name: string, turns: readonly Measurement[], [speed = '', cpu = '']: readonly string[] = []): void {
  const typical = (key: keyof Measurement) => median(turns.map((turn) => turn[key])).toFixed(0);
  const cells = [name, typical('perSecond'), speed, typical('cpu'), cpu, typical('p50'), typical('p99')];
  print(`| ${cells.join(' | ')} |`);
}

async function shares(upstream: string): Promise<void> {
  const profiled = await startService('profiled', measuredConfig(upstream), ['--cpu-prof', `--cpu-prof-dir=${folder}`]);
  // Long enough for the start, which is in the profile too, to count for little.
  await load(profiled.urls.encoded ?? '', { duration: 20 });
  await profiled.stop();
  const file = (await readdir(folder)).find((name) => name.endsWith('.cpuprofile'));
  if (file === undefined) throw new Error('node left no profile');
  print('\n| part, encoded requests | share of busy CPU |\n|---|---|');
  for (const [part, share] of await cpuShares(join(folder, file))) {
    if (share >= 0.005) print(`| ${part} | ${(100 * share).toFixed(1)} % |`);
  }
  if (options.profile) await copyFile(join(folder, file), join(process.cwd(), 'service.cpuprofile'));
}

async function startTimes(upstream: string): Promise<void> {
  print('\n| start to listening, ms (best of 5) | built | from source |\n|---|---|---|');
  for (const count of [1, 1000]) {
    const file = join(folder, 'large.yaml');
    await writeFile(file, largeConfig(upstream, count));
    const time = async (args: readonly string[]) => {
      const times: number[] = [];
      for (let i = 0; i < 5; i++) {
        const server = await start('starting', SERVER, [...args, 'start', '-c', file]);
        times.push(server.started);
        await server.stop();
      }
      return Math.min(...times).toFixed(0);
    };
    const built = await time([join(dist, 'cli/bin.js')]);
    const source = await time([join(root, 'cli/bin.js')]);
    print(`| ${count} endpoints | ${built} | ${source} |`);
  }
}

async function memory(upstream: string): Promise<void> {
  const service = await startService('memory', measuredConfig(upstream));
  print('\n| requests so far | resident MiB |\n|---|---|');
  print(`| 0 | ${(await service.memory()).toFixed(0)} |`);
  const portions = 4;
  for (let i = 1; i <= portions; i++) {
    const amount = Math.ceil(Number(options.requests) / portions);
    await load(service.urls.encoded ?? '', { amount });
    print(`| ${i * amount} | ${(await service.memory()).toFixed(0)} |`);
  }
  await service.stop();
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

try {
  const upstream = await start('upstream', OTHERS, [join(dist, 'bench/upstream.js')]);
  const floor = await start('floor', SERVER, [join(dist, 'bench/floor.js')], { UPSTREAM: upstream.url });
  const noOp = await start('no-op', SERVER, [join(dist, 'bench/no-op.js')]);
  const service = await startService('service', measuredConfig(upstream.url));
  const hooked = await startService('hooked', measuredConfig(upstream.url, [join(root, 'bench/six-hooks.mjs')]));
  const encoded = { name: 'encoded', server: service, url: service.urls.encoded ?? '' };
  const hooks = { name: 'encoded, six hooks', server: hooked, url: hooked.urls.encoded ?? '' };
  const raw = { name: 'raw', server: service, url: service.urls.raw ?? '' };
  const cached = { name: 'cached', server: service, url: service.urls.cached ?? '' };
  const floorEncoded = { name: 'floor, encoded', server: floor, url: `${floor.url}/encoded` };
  const floorRaw = { name: 'floor, raw', server: floor, url: `${floor.url}/raw` };
  for (const { url } of [encoded, hooks, raw, cached, floorEncoded, floorRaw]) await verified(url);
  print('\n| work | requests/s | ratio | CPU µs a request | ratio | p50 ms | p99 ms |\n|---|---|---|---|---|---|---|');
  await pair(floorEncoded, encoded);
  await pair(encoded, hooks);
  await pair(floorRaw, raw);
  await pair({ name: 'no-op', server: noOp, url: `${noOp.url}/kept` }, cached);
  await Promise.all([floor, noOp, service, hooked].map((server) => server.stop()));
  await shares(upstream.url);
  await startTimes(upstream.url);
  await memory(upstream.url);
} finally {
  await Promise.all(servers.map((server) => server.stop()));
  await rm(folder, { recursive: true });
}
