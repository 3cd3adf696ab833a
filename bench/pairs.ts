import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { verifyResponse } from '../verify/index.ts';
import { type Headers, load, once, type Turn } from './load.ts';
import { type ServerProcess, startServer } from './server-process.ts';

/** Where servers that are measured run, and where all else does. */
export const SERVER = '0';
export const OTHERS = '1';

export const dist = fileURLToPath(new URL('..', import.meta.url));
const env = { SERVICE_PRIVATE_KEY: `0x${'11'.repeat(32)}`, LOG_FORMAT: 'json' };

export interface Measured {
  readonly name: string;
  readonly server: ServerProcess;
  readonly url: string;
  /** Headers of the next request, where each has its own. */
  readonly headers?: () => Headers;
}

/** A turn with the microseconds of CPU that the server used for each request. */
interface Measurement extends Turn {
  readonly cpu: number;
}

export interface Service extends ServerProcess {
  /** By the names of its endpoints. */
  readonly ids: Readonly<Record<string, string>>;
  readonly urls: Readonly<Record<string, string>>;
}

/** Servers of one run, what they are measured against, and the table of it. */
export class Bench {
  readonly folder: string;
  readonly #seconds: number;
  readonly #rounds: number;
  readonly #servers: ServerProcess[] = [];

  private constructor(folder: string, seconds: number, rounds: number) {
    this.folder = folder;
    this.#seconds = seconds;
    this.#rounds = rounds;
  }

  /** Ends all servers when it is done. @param seconds of each turn. @param rounds how often each server has its turn. */
  static async run(seconds: number, rounds: number, work: (bench: Bench) => Promise<void>): Promise<void> {
    const bench = new Bench(await mkdtemp(join(tmpdir(), 'signed-data-proxy-bench-')), seconds, rounds);
    try {
      await work(bench);
    } finally {
      await Promise.all(bench.#servers.map((server) => server.stop()));
      await rm(bench.folder, { recursive: true });
    }
  }

  /** @param cores as `taskset` takes them. */
  async start(name: string, cores: string, args: readonly string[], more: Record<string, string> = {}) {
    const server = await startServer({ name, cores, args, env: { ...env, ...more }, folder: this.folder });
    this.#servers.push(server);
    return server;
  }

  /** The service as built. */
  async startService(
    name: string,
    config: string,
    { nodeOptions = [], options = [], cores = SERVER, build = dist }: StartService = {},
  ): Promise<Service> {
    const file = join(this.folder, `${name}.yaml`);
    await writeFile(file, config);
    const program = join(build, 'cli/main.js');
    const server = await this.start(name, cores, [...nodeOptions, program, 'start', '-c', file, ...options]);
    const found = (await readFile(server.log, 'utf8')).matchAll(/bench\/(\w+) (0x[0-9a-f]{64})/g);
    const ids = Object.fromEntries([...found].map(([, endpoint = '', id = '']) => [endpoint, id]));
    const urls = Object.entries(ids).map(([endpoint, id]) => [endpoint, `${server.url}/endpoints/${id}`]);
    return { ...server, ids, urls: Object.fromEntries(urls) };
  }

  /** What is measured against what. They take turns, so that both have the same pauses: V8 gives up memory and code in them. */
  async pair(against: Measured, work: Measured): Promise<void> {
    const turns: { readonly own: Measurement; readonly other: Measurement }[] = [];
    for (const { url, headers } of [against, work]) await load(url, { duration: 2 }, headers);
    while (turns.length < this.#rounds) {
      // Either is the first as often as the second.
      const first = turns.length % 2 === 0 ? await this.#turn(against) : undefined;
      const own = await this.#turn(work);
      turns.push({ own, other: first ?? (await this.#turn(against)) });
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

  async #turn({ server, url, headers }: Measured): Promise<Measurement> {
    const before = await server.cpu();
    const turn = await load(url, { duration: this.#seconds }, headers);
    return { ...turn, cpu: ((await server.cpu()) - before) / turn.requests };
  }
}

interface StartService {
  readonly nodeOptions?: readonly string[];
  /** Options of `start`. */
  readonly options?: readonly string[];
  readonly cores?: string;
  /** The folder of another build. */
  readonly build?: string;
}

/** What is fast must be right first. */
export async function verified({ url, headers }: Measured): Promise<void> {
  const result = verifyResponse(await once(url, headers), { node: null });
  if (!result.ok) throw new Error(`${url}: ${result.message}`);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

export function printHeader(): void {
  print('\n| work | requests/s | ratio | CPU µs a request | ratio | p50 ms | p99 ms |\n|---|---|---|---|---|---|---|');
}

function row(name: string, turns: readonly Measurement[], [speed = '', cpu = '']: readonly string[] = []): void {
  const typical = (key: keyof Measurement) => median(turns.map((turn) => turn[key])).toFixed(0);
  const cells = [name, typical('perSecond'), speed, typical('cpu'), cpu, typical('p50'), typical('p99')];
  print(`| ${cells.join(' | ')} |`);
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
