import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** A measured program, pinned to cores. */
export interface ServerProcess {
  readonly url: string;
  readonly pid: number | undefined;
  /** File with what it printed. */
  readonly log: string;
  /** Milliseconds from spawn until it listened. */
  readonly started: number;
  /** Resident memory in MiB (VmRSS). */
  memory(): Promise<number>;
  /** Microseconds of CPU that its threads and those of its children have used so far. */
  cpu(): Promise<number>;
  stop(): Promise<void>;
}

export interface StartOptions {
  readonly name: string;
  /** As `taskset` takes them. */
  readonly cores: string;
  /** Arguments of node. */
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly folder: string;
}

/** Milliseconds that a program has to listen, such as one with a million payments on a machine that does other things too. */
const START_TIMEOUT_MS = 120_000;

/** Starts a program and waits for its line `listening on <url>`. Output goes to a file: a pipe that nobody reads blocks. */
export async function startServer({ name, cores, args, env, folder }: StartOptions): Promise<ServerProcess> {
  const log = join(folder, `${name}.log`);
  const output = await open(log, 'w');
  const began = performance.now();
  const child = spawn('taskset', ['-c', cores, process.execPath, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', output.fd, output.fd],
  });
  await output.close();
  const url = await listening(child, log, name);
  const started = performance.now() - began;
  return {
    url,
    pid: child.pid,
    log,
    started,
    memory: async () => {
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
      return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
    },
    cpu: () => cpuOf(child.pid),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.kill('SIGTERM');
      await gone;
    },
  };
}

async function listening(child: ChildProcess, log: string, name: string): Promise<string> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (child.exitCode === null && performance.now() < deadline) {
    const url = /listening on (http:[^\s"]+)/.exec(await readFile(log, 'utf8'))?.[1];
    if (url !== undefined) return url;
    await sleep(2);
  }
  child.kill('SIGKILL');
  throw new Error(`${name} did not start: ${await readFile(log, 'utf8')}`);
}

/** Microseconds. Linux counts them in nanoseconds in `schedstat`, in `stat` in steps of 10 ms. */
async function cpuOf(pid: number | undefined): Promise<number> {
  const tasks = `/proc/${pid}/task`;
  const threads = await Promise.all(
    (await readdir(tasks)).map(async (thread) => {
      // A thread may have ended meanwhile.
      const spent = await readFile(`${tasks}/${thread}/schedstat`, 'latin1').catch(() => '0');
      return Number(spent.split(' ', 1)[0]) / 1000;
    }),
  );
  const children = (await readFile(`${tasks}/${pid}/children`, 'latin1')).split(' ').filter(Boolean);
  const theirs = await Promise.all(children.map((child) => cpuOf(Number(child))));
  return [...threads, ...theirs].reduce((sum, one) => sum + one, 0);
}
