import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { verifyResponse } from '../../verify/index.ts';
import { type Load, load, once, type Turn } from './load.ts';
import { type ServerProcess, startServer } from './server-process.ts';

/** Where servers that are measured run, and where all else does. */
export const SERVER = '0';
export const OTHERS = '1';

export const dist = fileURLToPath(new URL('../..', import.meta.url));
export const root = fileURLToPath(new URL('../../..', import.meta.url));
const env = {
  SERVICE_PRIVATE_KEY: `0x${'11'.repeat(32)}`,
  SERVICE_NEXT_PRIVATE_KEY: `0x${'22'.repeat(32)}`,
  LOG_FORMAT: 'json',
};

export interface Measured extends Omit<Load, 'requests'> {
  readonly name: string;
  readonly server: ServerProcess;
  /** Requests of one turn by those of the others, where each takes long. */
  readonly part?: number;
}

/** A turn with the microseconds of CPU that the server used for each request. */
export interface Measurement extends Turn {
  readonly cpu: number;
}

/** What was measured, and a measurement for each round. */
export interface Turns {
  readonly name: string;
  readonly turns: readonly Measurement[];
}

export interface Service extends ServerProcess {
  /** By the names of its endpoints. */
  readonly ids: Readonly<Record<string, string>>;
  readonly urls: Readonly<Record<string, string>>;
}

export interface RoundOptions {
  /** Of each turn. */
  readonly requests: number;
  /** How often each server has its turn. */
  readonly rounds: number;
  /** To each server before its first turn: V8 makes fast code of what it has seen often. */
  readonly warmUp?: number;
}

const WARM_UP_MS = 5000;

/** The options that all comparisons have on the command line. */
export function roundOptions(requests: number, rounds: number) {
  return {
    requests: { type: 'string', default: String(requests) },
    rounds: { type: 'string', default: String(rounds) },
    'warm-up': { type: 'string', default: String(WARM_UP_MS) },
  } as const;
}

/** @param values as `parseArgs` has them. */
export function readRounds(values: { requests: string; rounds: string; 'warm-up': string }): Required<RoundOptions> {
  return { requests: Number(values.requests), rounds: Number(values.rounds), warmUp: Number(values['warm-up']) };
}

interface StartService {
  readonly nodeOptions?: readonly string[];
  /** Options of `start`. */
  readonly options?: readonly string[];
  readonly cores?: string;
  /** The folder of another build. */
  readonly build?: string;
  /** What is started: as operators do, or module by module, for profiles that name files. */
  readonly entry?: 'cli/bin.js' | 'cli/main.js';
}

/** Servers of one run, and how they take turns. */
export class Bench {
  readonly folder: string;
  readonly #options: RoundOptions;
  readonly #servers: ServerProcess[] = [];

  private constructor(folder: string, options: RoundOptions) {
    this.folder = folder;
    this.#options = options;
  }

  /** Ends all servers when it is done. */
  static async run<T>(options: RoundOptions, work: (bench: Bench) => Promise<T>): Promise<T> {
    execFileSync('taskset', ['-a', '-p', '-c', OTHERS, String(process.pid)]);
    const bench = new Bench(await mkdtemp(join(tmpdir(), 'signed-data-proxy-bench-')), options);
    try {
      return await work(bench);
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

  /** A program of this folder that needs no pinning, such as the upstream. */
  startHelper(name: string): Promise<ServerProcess> {
    return this.start(name, OTHERS, [join(dist, `tools/bench/${name}.js`)]);
  }

  /** The service as built. */
  async startService(
    name: string,
    config: string,
    { nodeOptions = [], options = [], cores = SERVER, build = dist, entry = 'cli/bin.js' }: StartService = {},
  ): Promise<Service> {
    const file = join(this.folder, `${name}.yaml`);
    await writeFile(file, config);
    const program = [...nodeOptions, join(build, entry)];
    const server = await this.start(name, cores, [...program, 'start', '-c', file, ...options]);
    const found = (await readFile(server.log, 'utf8')).matchAll(/bench\/(\w+) (0x[0-9a-f]{64})/g);
    const ids = Object.fromEntries([...found].map(([, endpoint = '', id = '']) => [endpoint, id]));
    const urls = Object.entries(ids).map(([endpoint, id]) => [endpoint, `${server.url}/endpoints/${id}`]);
    return { ...server, ids, urls: Object.fromEntries(urls) };
  }

  /**
   * Has each of a group take its turn in each round, forwards and backwards in turn. So a change of the machine's mood hits all, and
   * all have the same pauses, in which V8 gives up memory and code.
   */
  async measure(group: readonly Measured[]): Promise<Turns[]> {
    const { requests, rounds, warmUp = WARM_UP_MS } = this.#options;
    for (const one of group) {
      await verified(one);
      await load({ ...one, requests: Math.ceil(warmUp * (one.part ?? 1)) });
    }
    const found = new Map(group.map((one) => [one, [] as Measurement[]]));
    for (let round = 0; round < rounds; round++) {
      for (const one of round % 2 === 0 ? group : group.toReversed())
        found.get(one)?.push(await this.#turn(one, requests));
    }
    return [...found].map(([{ name }, turns]) => ({ name, turns }));
  }

  async #turn(measured: Measured, requests: number): Promise<Measurement> {
    const before = await measured.server.cpu();
    const turn = await load({ ...measured, requests: Math.ceil(requests * (measured.part ?? 1)) });
    return { ...turn, cpu: ((await measured.server.cpu()) - before) / turn.requests };
  }
}

/** What is fast must be right first. */
async function verified({ url, headers }: Measured): Promise<void> {
  const result = verifyResponse(await once(url, headers), { node: null });
  if (!result.ok) throw new Error(`${url}: ${result.message}`);
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
