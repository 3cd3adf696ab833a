import { AsyncLocalStorage } from 'node:async_hooks';
import { type ChildProcess, spawn } from 'node:child_process';
import { type EventEmitter, once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runCommandLine } from '../../cli/command-line.ts';
import { complain, describeError } from '../../service/terminal.ts';
import type { Lifetime } from '../support/lifetime.ts';
import { awaited, inTime } from '../support/wait.ts';

export const PACKAGE_ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
/** The program in few files, which `npm run program` makes of the source. */
export const PROGRAM = join(PACKAGE_ROOT, '.cache/built/cli/bin.js');

/** How a process ended, and all it wrote. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The end of a command that says what is wrong. */
export const failed = (...messages: string[]): Ended => ({
  code: 1,
  signal: null,
  stdout: '',
  stderr: messages.map((message) => `error: ${message}\n`).join(''),
});

export interface RunOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Whether it has a process group of its own, which it may end without harm to the test. */
  readonly ownGroup?: boolean;
}

/** A process whose output is watched while it runs. */
export interface Running {
  readonly child: ChildProcess;
  readonly ended: PromiseLike<Ended>;
  /** Resolves with the first match in stdout; rejects when the process ends without one. */
  output(pattern: RegExp): Promise<RegExpExecArray>;
  /** Returns what it has written to stdout so far. */
  written(): string;
  /** Sends SIGTERM, and resolves with the end. */
  stop(): PromiseLike<Ended>;
}

export async function kill({ child, ended }: Running): Promise<void> {
  child.kill('SIGKILL');
  await ended;
}

/** Variables of processes whose coverage counts: all others run what these and the tests themselves run, too. */
export const COUNTED = { NODE_V8_COVERAGE: process.env.NODE_V8_COVERAGE ?? '' };

/** An environment without what this test run itself inherited from npm or from an operator's shell. */
export function environment(extra: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { PATH = '', HOME } = process.env;
  // Node itself passes on a folder that is left out, and none that is empty.
  return { PATH, ...(HOME !== undefined && { HOME }), NODE_V8_COVERAGE: '', ...extra };
}

/** A program may install packages. */
const END_TIMEOUT_MS = 300_000;

/** Starts a program; it is killed when the test ends, should it still run. */
export function launch(t: Lifetime, program: string, args: readonly string[], options: RunOptions = {}): Running {
  const child = spawn(program, args, {
    cwd: options.cwd ?? tmpdir(),
    env: environment(options.env),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: options.ownGroup ?? false,
  });
  t.after(async () => void child.kill('SIGKILL'));
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const shown = () => `of "${[program, ...args].join(' ')}": ${stdout}${stderr}`;
  const ended = once(child, 'close').then(([code, signal]): Ended => ({ code, signal, stdout, stderr }));
  const output = (pattern: RegExp) => {
    const found = new Promise<RegExpExecArray>((resolve, reject) => {
      const look = () => {
        const match = pattern.exec(stdout);
        if (match === null) return;
        child.stdout?.off('data', look);
        resolve(match);
      };
      child.stdout?.on('data', look);
      child.once('close', () => reject(new Error(`ended without ${pattern}: ${stdout}${stderr}`)));
      look();
    });
    return inTime(found, () => `${pattern} in the output ${shown()}`);
  };
  const end = awaited(ended, () => `the end ${shown()}`, END_TIMEOUT_MS);
  const stop = () => {
    child.kill('SIGTERM');
    return end;
  };
  return { child, ended: end, output, written: () => stdout, stop };
}

/** Starts the command line from its source. */
export function launchCli(t: TestContext, args: readonly string[], options: RunOptions = {}): Running {
  return launch(t, process.execPath, [PROGRAM, ...args], options);
}

type Stream = 'stdout' | 'stderr';

/** What a command line that runs in this process has written, and what it has put in the place of `write`. */
interface Writing {
  readonly written: Record<Stream, string>;
  readonly replaced: Partial<Record<Stream, NodeJS.WriteStream['write']>>;
}

const writing = new AsyncLocalStorage<Writing>();

/** What others write meanwhile, such as the reports of tests, goes where it always goes. */
function capture(name: Stream): void {
  const stream = process[name];
  const write = stream.write.bind(stream);
  const captured = (chunk: string | Uint8Array, ...rest: unknown[]) => {
    const now = writing.getStore();
    if (now === undefined) return Reflect.apply(write, stream, [chunk, ...rest]);
    now.written[name] += typeof chunk === 'string' ? chunk : new TextDecoder().decode(chunk);
    const done = rest.at(-1);
    if (typeof done === 'function') process.nextTick(done);
    return true;
  };
  Object.defineProperty(stream, 'write', {
    get: () => writing.getStore()?.replaced[name] ?? captured,
    set: (other: NodeJS.WriteStream['write']) => {
      const now = writing.getStore();
      if (now !== undefined) now.replaced[name] = other;
    },
  });
}
capture('stdout');
capture('stderr');

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a command to its end in this process, as `cli/main.ts` does: a process for each would take most of the time of these tests.
 * One runs at a time, since a process has one folder and one environment. `start` is one that fails: a service is launched.
 */
export function runCli(_: Lifetime, args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const here = last.then(() => runHere(args, options));
  last = here;
  return here;
}

/** What `start` listens to from its beginning, and this process does not. */
const HEARD: readonly (readonly [EventEmitter, string])[] = [
  ...['SIGTERM', 'SIGINT', 'SIGHUP', 'exit'].map((name) => [process, name] as const),
  ...[process.stdout, process.stderr].map((stream) => [stream, 'error'] as const),
];
const heard = () => HEARD.map(([by, name]) => by.rawListeners(name) as ((...args: unknown[]) => void)[]);

async function runHere(args: readonly string[], { cwd = tmpdir(), env }: RunOptions): Promise<Ended> {
  const before = { cwd: process.cwd(), env: process.env, heard: heard() };
  const written = { stdout: '', stderr: '' };
  process.env = environment(env);
  process.chdir(cwd);
  try {
    const code = await writing.run({ written, replaced: {} }, async () => {
      try {
        return await runCommandLine(args);
      } catch (error) {
        await complain('error', describeError(error));
        return 1;
      }
    });
    return { code, signal: null, ...written };
  } finally {
    for (const [i, listeners] of heard().entries())
      for (const added of listeners.slice(before.heard[i]?.length)) HEARD[i]?.[0].off(HEARD[i][1], added);
    process.chdir(before.cwd);
    process.env = before.env;
  }
}

/** A folder with files, removed when the test or the suite ends. */
export async function folderWith(lifetime: Lifetime, files: Readonly<Record<string, string>> = {}): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sdp-cli-'));
  // A service that still ends may write its last file meanwhile.
  lifetime.after(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  for (const [name, text] of Object.entries(files))
    await writeFile(join(folder, name), text, { mode: name.endsWith('.env') ? 0o600 : 0o644 });
  return folder;
}
