import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { stringify } from 'yaml';
import { verifyResponse } from '../../verify/index.ts';

export const dist = fileURLToPath(new URL('../..', import.meta.url));
export const root = fileURLToPath(new URL('../../..', import.meta.url));

/** The CPU cores of the measured servers, and of all other processes. */
const [SERVER, OTHERS] = ['0', '1'];
const CONNECTIONS = 32;
/** Requests to each server before its first turn, so that V8 has optimized the code. */
const WARM_UP = 5000;
/** Requests before each turn: a server with two turns in a row would find the processor's caches full of its code. */
const LEAD_IN = 500;
const START_TIMEOUT_MS = 120_000;
const env = { SERVICE_PRIVATE_KEY: `0x${'11'.repeat(32)}`, LOG_FORMAT: 'json' };
const request = {
  method: 'POST',
  headers: { 'content-type': 'application/json', 'x-api-key': 'benchmark-key-of-16' },
  body: '{"parameters":{"symbol":"ETHUSD"}}',
} as const;

export interface Server {
  readonly url: string;
  /** Milliseconds from spawn until it listened. */
  readonly started: number;
  /** Returns the URL of the server's endpoint of this name. */
  urlOf(work: string): string;
  /** Returns the microseconds of CPU that the server's threads have used so far. */
  cpu(): Promise<number>;
  stop(): Promise<void>;
}

/** The figures of one server in one turn: latency in milliseconds, `cpu` in microseconds per request. */
export interface Turn {
  readonly perSecond: number;
  readonly p99: number;
  readonly cpu: number;
}

/** Returns a config with an encoded, a raw and a cached endpoint. @param more further endpoints, to measure the start. */
export function configOf(upstream: string, more = 0): string {
  const parameters = [{ name: 'symbol', required: true }];
  const encoding = { type: 'int256', path: '$.price', times: '1e18' };
  const endpoints = [
    { name: 'encoded', path: '/small', parameters, encoding },
    { name: 'raw', path: '/large', parameters },
    { name: 'cached', path: '/small/kept', parameters, encoding, cache: { maxAge: 3_600_000 } },
    ...Array.from({ length: more }, (_, i) => ({ name: `e${i}`, path: `/e/${i}`, parameters, encoding })),
  ];
  return stringify({
    version: '1.0',
    server: { port: 0, rateLimit: { max: 1_000_000_000, headers: false } },
    apis: [{ name: 'bench', url: upstream, auth: { type: 'apiKey', keys: ['benchmark-key-of-16'] }, endpoints }],
  });
}

/** The servers of one run, and the order of their turns. */
export class Bench {
  readonly #folder: string;
  readonly #servers: Server[] = [];

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Runs `work` with the URL of an upstream. All servers end when it is done. */
  static async run<T>(work: (bench: Bench, upstream: string) => Promise<T>): Promise<T> {
    execFileSync('taskset', ['-a', '-p', '-c', OTHERS, String(process.pid)]);
    const bench = new Bench(await mkdtemp(join(tmpdir(), 'signed-data-proxy-bench-')));
    try {
      const upstream = await bench.#start('upstream', OTHERS, [join(dist, 'tools/bench/upstream.js')]);
      return await work(bench, upstream.url);
    } finally {
      await Promise.all(bench.#servers.map((server) => server.stop()));
      await rm(bench.#folder, { recursive: true });
    }
  }

  floor(upstream: string): Promise<Server> {
    return this.#start('floor', SERVER, [join(dist, 'tools/bench/floor.js')], { UPSTREAM: upstream });
  }

  /** Starts the service of a build, as operators do. */
  async service(name: string, config: string, build = dist): Promise<Server> {
    const file = join(this.#folder, `${name}.yaml`);
    await writeFile(file, config);
    return this.#start(name, SERVER, [join(build, 'cli/bin.js'), 'start', '-c', file]);
  }

  /**
   * Gives each server a turn in each round, in alternating order, so that changes of the machine's speed affect all.
   * @returns the turns of each server.
   */
  async measure(servers: readonly Server[], work: string, requests: number, rounds: number): Promise<Turn[][]> {
    const found = servers.map((): Turn[] => []);
    for (const server of servers) {
      await verified(server.urlOf(work));
      await load(server.urlOf(work), WARM_UP);
    }
    for (let round = 0; round < rounds; round++) {
      const order = [...servers.entries()];
      for (const [i, server] of round % 2 === 0 ? order : order.toReversed()) {
        await load(server.urlOf(work), LEAD_IN);
        const before = await server.cpu();
        const turn = await load(server.urlOf(work), requests);
        found[i]?.push({ ...turn, cpu: ((await server.cpu()) - before) / requests });
      }
    }
    return found;
  }

  /** Starts a process. Its output goes to a file, because a pipe that is not read blocks. */
  async #start(name: string, cores: string, args: readonly string[], more: object = {}): Promise<Server> {
    const log = join(this.#folder, `${name}.log`);
    const output = await open(log, 'w');
    const began = performance.now();
    const words = ['-c', cores, process.execPath, ...args];
    const stdio = ['ignore', output.fd, output.fd] as const;
    const child = spawn('taskset', words, { env: { ...process.env, ...env, ...more }, stdio: [...stdio] });
    await output.close();
    const url = await listening(child, log, name);
    const started = performance.now() - began;
    const found = (await readFile(log, 'utf8')).matchAll(/bench\/(\w+) (0x[0-9a-f]{64})/g);
    const ids = new Map([...found].map(([, endpoint = '', id = '']) => [endpoint, id]));
    const server = {
      url,
      started,
      urlOf: (work: string) => (ids.has(work) ? `${url}/endpoints/${ids.get(work)}` : `${url}/${work}`),
      cpu: () => cpuOf(child.pid),
      stop: async () => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        child.kill('SIGTERM');
        await once(child, 'exit');
      },
    };
    this.#servers.push(server);
    return server;
  }
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
async function verified(url: string): Promise<void> {
  const response = await fetch(url, request);
  if (!response.ok) throw new Error(`status ${response.status} at ${url}`);
  const result = verifyResponse(await response.json(), { node: null });
  if (!result.ok) throw new Error(`${url}: ${result.message}`);
}

/** Waits for the line `listening on <url>`. */
async function listening(child: ChildProcess, log: string, name: string): Promise<string> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (child.exitCode === null && performance.now() < deadline) {
    const text = await readFile(log, 'utf8');
    const url = /listening on (http:[^\s"]+)/.exec(text)?.[1];
    if (url !== undefined) return url;
    await sleep(2);
  }
  child.kill('SIGKILL');
  throw new Error(`${name} did not start: ${await readFile(log, 'utf8')}`);
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
