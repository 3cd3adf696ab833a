import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext } from 'node:test';
import { Redis } from 'ioredis';
import { stateRedis } from '../../builtins/state-redis/index.ts';
import type { StateEngine } from '../../plugins-sdk/state/area.ts';
import { endsWith, type Lifetime } from '../support/lifetime.ts';

/** Server programs that are here. */
const programs = ['redis-server', 'valkey-server'].filter((name) => spawnSync(name, ['--version']).status === 0);

/** A suite for each kind of server that is here. */
export function describeServers(name: string, suite: (program: string) => void | Promise<void>): void {
  const skip = 'neither redis-server nor valkey-server is installed';
  if (programs.length === 0) describe(name, { skip }, () => undefined);
  for (const program of programs) describe(`${name} (${program})`, () => suite(program));
}

/** A program that ends with the test or the suite. */
export function startProgram(lifetime: Lifetime, program: string, words: readonly string[]): void {
  const child = spawn(program, words, { stdio: 'ignore' });
  lifetime.after(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    await once(child, 'exit');
  });
}

/**
 * A port that no connection gets by chance, so that it is still free when a server starts again: systems take theirs from 32768
 * upwards, and a node of a cluster takes one that is higher by 10,000, too.
 */
export async function freePort(): Promise<number> {
  const port = randomInt(12_000, 22_000);
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return freePort();
  }
  server.close();
  await once(server, 'close');
  return port;
}

/** Loses nothing that it has acknowledged. */
export const DURABLE = { save: '', appendonly: 'yes', appendfsync: 'always' };

export type Directives = Readonly<Record<string, string>>;

/** A server of its own, in a folder of its own. */
export class RedisServer {
  readonly port: number;
  readonly #program: string;
  readonly #folder: string;
  readonly #directives: Directives;
  #child: ChildProcess | undefined;

  private constructor(program: string, port: number, folder: string, directives: Directives) {
    this.#program = program;
    this.port = port;
    this.#folder = folder;
    this.#directives = directives;
  }

  static async start(program: string, directives: Directives = {}, port?: number): Promise<RedisServer> {
    const folder = await mkdtemp(join(tmpdir(), 'sdp-redis-'));
    const server = new RedisServer(program, port ?? (await freePort()), folder, { ...DURABLE, ...directives });
    await server.run();
    return server;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** As errors name it. */
  get name(): string {
    return `redis at 127.0.0.1:${this.port}`;
  }

  /** Runs it, perhaps again, on what it has kept. */
  async run(): Promise<void> {
    const directives = { port: String(this.port), bind: '127.0.0.1', dir: this.#folder, ...this.#directives };
    const words = Object.entries(directives).flatMap(([name, value]) => [`--${name}`, ...value.split(' ')]);
    const child = spawn(this.#program, words, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#child = child;
    const kill = () => child.kill('SIGKILL');
    process.once('exit', kill);
    child.once('exit', () => process.off('exit', kill));
    let output = '';
    for await (const chunk of child.stdout.setEncoding('utf8')) {
      output += chunk;
      if (output.includes('Ready to accept connections')) return void child.stdout.resume();
    }
    throw new Error(`${this.#program} does not run: ${output}`);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  /** What an operator does. */
  command(...words: readonly string[]): Promise<unknown> {
    return this.commandIn(0, ...words);
  }

  async commandIn(db: number, ...words: readonly string[]): Promise<unknown> {
    const [name = '', ...rest] = words;
    const options = { port: this.port, db, lazyConnect: true, enableReadyCheck: false, retryStrategy: () => null };
    const admin = new Redis(options);
    admin.on('error', () => undefined);
    try {
      await admin.connect();
      return await admin.call(name, rest);
    } finally {
      admin.disconnect();
    }
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** A server that ends with the test or the suite. */
export function redisFor(lifetime: Lifetime, program: string, directives?: Directives): Promise<RedisServer> {
  return endsWith(lifetime, RedisServer.start(program, directives));
}

/** A certificate for redis.test and its key, also as a server takes them; nothing where openssl is not installed. */
export async function certificateFor(lifetime: Lifetime) {
  const files = await mkdtemp(join(tmpdir(), 'sdp-redis-tls-'));
  lifetime.after(() => rm(files, { recursive: true }));
  const [certFile, keyFile] = [join(files, 'cert.pem'), join(files, 'key.pem')];
  const made = spawnSync('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
    ...['-subj', '/CN=redis.test', '-addext', 'subjectAltName=DNS:redis.test', '-keyout', keyFile, '-out', certFile],
  ]);
  if (made.status !== 0) return undefined;
  const [cert, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')]);
  const directives = { 'tls-cert-file': certFile, 'tls-key-file': keyFile, 'tls-ca-cert-file': certFile };
  return { cert, key, directives };
}

/** An engine as the service opens it, and what it logged. */
export function openEngine(config: Given) {
  const type = stateRedis.engines?.redis;
  if (type === undefined) throw new Error('there is no such engine');
  const logged: string[] = [];
  const log = (message: string) => void logged.push(message);
  const services = {
    log: { debug: log, info: log, warn: log, error: log },
    now: () => Date.now(),
    path: (relative: string) => relative,
  };
  const engine: StateEngine = type.open(config, services);
  return { engine, logged };
}

export type Given = Readonly<Record<string, unknown>>;

/** What `start` says, and what the log says; the engine is closed in the end. */
export async function started(t: TestContext, config: Given) {
  const { engine, logged } = openEngine(config);
  t.after(() => engine.close());
  try {
    await engine.start();
    return { engine, logged };
  } catch (error) {
    return { engine, logged, error: String(error) };
  }
}

export async function errorOf(t: TestContext, config: Given): Promise<string | undefined> {
  return (await started(t, config)).error;
}
