import { readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import autocannon from 'autocannon';
import { listen, urlOf } from '../../lib/http/listen.ts';
import { folderWith, launch } from '../../test/cli/run.ts';
import type { Lifetime } from '../../test/support/lifetime.ts';
import { verifyResponse } from '../../verify/index.ts';
import { root } from '../scripts/package/run.ts';

/** The CPU core of the measured servers. */
const SERVER = '0';
/** That of the upstream and the load. */
export const OTHERS = '1';
const CONNECTIONS = 32;
/** Requests to each server before its first turn, so that V8 has optimized the code. */
const WARM_UP = 5000;
/** Requests of a turn. */
export const REQUESTS = 2000;
/** Requests before each turn: a server with two turns in a row would find the processor's caches full of its code. */
const LEAD_IN = 500;
const SERVICE_PRIVATE_KEY = `0x${'11'.repeat(32)}`;
const request = {
  method: 'POST',
  headers: { 'content-type': 'application/json', 'x-api-key': 'benchmark-key-of-16' },
  body: '{"parameters":{"symbol":"ETHUSD"}}',
} as const;

export interface Server {
  /** Milliseconds from spawn until it listened. */
  readonly started: number;
  /** Returns the URL of the server's endpoint of this name. */
  urlOf(work: string): string;
  /** Returns the microseconds of CPU that the server's threads have used so far. */
  cpu(): Promise<number>;
}

/** The figures of one server in one turn: latency in milliseconds, `cpu` in microseconds per request. */
export interface Turn {
  readonly perSecond: number;
  readonly p99: number;
  readonly cpu: number;
}

/** Starts the upstream of every measured server: a small quote for encoding, a 1.3 KB document for raw answers. */
export async function startUpstream(lifetime: Lifetime): Promise<string> {
  const small = JSON.stringify({ symbol: 'ETHUSD', price: 2064.01, updated: 1_795_252_338 });
  const quotes = Array.from({ length: 16 }, (_, i) => ({
    symbol: `ASSET${i}`,
    price: 100.25 + i,
    volume: 12_345_678 + i,
  }));
  const large = JSON.stringify({ quotes });
  const server = createServer((request, response) => {
    const body = request.url?.startsWith('/large') ? large : small;
    const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
    response.writeHead(200, headers).end(body);
  });
  server.keepAliveTimeout = 60_000;
  await listen(server, { port: 0, host: '127.0.0.1' });
  lifetime.after(async () => void server.close());
  return urlOf(server);
}

export function startFloor(lifetime: Lifetime, upstream: string): Promise<Server> {
  return start(lifetime, ['--import', 'tsx', 'tools/bench/floor.ts'], { UPSTREAM: upstream });
}

/**
 * Starts the service of a build, as operators do, with an encoded, a raw and a cached endpoint.
 * @param more further endpoints, to measure the start.
 */
export async function startService(lifetime: Lifetime, upstream: string, dist: string, more = 0): Promise<Server> {
  const parameters = [{ name: 'symbol', required: true }];
  const encoding = { type: 'int256', path: '$.price', times: '1e18' };
  const endpoints = [
    { name: 'encoded', path: '/small', parameters, encoding },
    { name: 'raw', path: '/large', parameters },
    { name: 'cached', path: '/small/kept', parameters, encoding, cache: { maxAge: 3_600_000 } },
    ...Array.from({ length: more }, (_, i) => ({ name: `e${i}`, path: `/e/${i}`, parameters, encoding })),
  ];
  const config = JSON.stringify({
    version: '1.0',
    server: { port: 0, rateLimit: { max: 1_000_000_000, headers: false } },
    apis: [{ name: 'bench', url: upstream, auth: { type: 'apiKey', keys: ['benchmark-key-of-16'] }, endpoints }],
  });
  const folder = await folderWith(lifetime, { 'config.yaml': config });
  const words = [join(dist, 'cli/bin.js'), 'start', '-c', join(folder, 'config.yaml')];
  return start(lifetime, words, { SERVICE_PRIVATE_KEY, LOG_FORMAT: 'json' });
}

async function start(lifetime: Lifetime, words: string[], env: Record<string, string>): Promise<Server> {
  const began = performance.now();
  const running = launch(lifetime, 'taskset', ['-c', SERVER, process.execPath, ...words], { cwd: root, env });
  const [, url] = await running.output(/listening on (http:[^\s"]+)/);
  const started = performance.now() - began;
  const listed = running.written().matchAll(/bench\/(\w+) (0x[0-9a-f]{64})/g);
  const ids = new Map([...listed].map(([, endpoint = '', id = '']) => [endpoint, id]));
  return {
    started,
    urlOf: (work) => (ids.has(work) ? `${url}/endpoints/${ids.get(work)}` : `${url}/${work}`),
    cpu: () => cpuOf(running.child.pid),
  };
}

/**
 * Gives each server a turn in each round, in alternating order, so that changes of the machine's speed affect all.
 * @returns the turns of each server.
 */
export async function measure(servers: readonly Server[], work: string, rounds: number): Promise<Turn[][]> {
  const found = servers.map((): Turn[] => []);
  for (const server of servers) {
    await verify(server.urlOf(work));
    await load(server.urlOf(work), WARM_UP);
  }
  for (let round = 0; round < rounds; round++) {
    const order = [...servers.entries()];
    for (const [i, server] of round % 2 === 0 ? order : order.toReversed()) {
      await load(server.urlOf(work), LEAD_IN);
      const before = await server.cpu();
      const turn = await load(server.urlOf(work), REQUESTS);
      found[i]?.push({ ...turn, cpu: ((await server.cpu()) - before) / REQUESTS });
    }
  }
  return found;
}

/**
 * Sends a fixed number of requests. None is under way at the end, since it would not be counted.
 * @throws Error when an answer was not 2xx: a fast refusal is no result.
 */
async function load(url: string, amount: number) {
  const began = performance.now();
  // It never sleeps: waking it with an answer takes the server up to 40 µs, and only servers that are slower than the load.
  let isOver = false;
  const turn = () => isOver || setImmediate(turn);
  turn();
  const result = await autocannon({ ...request, url, connections: CONNECTIONS, amount, sampleInt: 10, timeout: 60 });
  isOver = true;
  const seconds = (performance.now() - began) / 1000;
  if (result.non2xx > 0 || result.errors > 0) {
    const answered = JSON.stringify(result.statusCodeStats);
    throw new Error(`${result.errors} errors, and answers by status: ${answered} at ${url}`);
  }
  return { perSecond: amount / seconds, p99: result.latency.p99 };
}

/** Verifies an answer of a server before it is measured. */
async function verify(url: string): Promise<void> {
  const response = await fetch(url, request);
  if (!response.ok) throw new Error(`status ${response.status} at ${url}`);
  const result = verifyResponse(await response.json(), { node: null });
  if (!result.ok) throw new Error(`${url}: ${result.message}`);
}

/** Returns microseconds of CPU. Linux counts nanoseconds in `schedstat`, but steps of 10 ms in `stat`. */
async function cpuOf(pid: number | undefined): Promise<number> {
  const tasks = `/proc/${pid}/task`;
  let sum = 0;
  for (const thread of await readdir(tasks)) {
    // The thread may have ended meanwhile.
    const spent = await readFile(`${tasks}/${thread}/schedstat`, 'latin1').catch(() => '0');
    sum += Number(spent.split(' ', 1)[0]) / 1000;
  }
  return sum;
}
