import type { ChildProcess } from 'node:child_process';
import cluster from 'node:cluster';
import { withTimeout } from '../../lib/time/with-timeout.ts';
import type { ProcessLog } from '../log.ts';
import { LogSink } from '../log-sink.ts';
import { passLines } from './lines.ts';
import { type FromPrimary, type FromWorker, readFromWorker } from './messages.ts';
import { identityVariables, type WorkerIdentity } from './worker-identity.ts';

/** Milliseconds that what a process wrote has to arrive once it has ended. */
const LAST_OUTPUT_TIMEOUT_MS = 1000;
/** Milliseconds that a stop may take beyond what the worker said, or that of one that has said nothing. */
const EXTRA_STOP_TIME_MS = 10_000;

/** How a worker's process ended. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Why it could not even begin. */
  readonly error?: Error;
}

type Heard = (worker: WorkerProcess, message: FromWorker, handle: unknown) => void;

const stderr = new LogSink(2);
process.on('exit', () => stderr.flushSync());

/** A worker, as the primary process knows it. */
export class WorkerProcess {
  readonly number: number;
  readonly pid: number | undefined;
  /** Resolves once it has ended and all that it wrote is passed on. */
  readonly ended: Promise<Ending>;
  /** Its config is that in force, so that it takes part in reloads. */
  isMember = false;
  isReady = false;
  /** Whether it was told to stop. */
  isStopping = false;
  /** When it became ready. */
  readySince = Number.POSITIVE_INFINITY;
  /** Why it could not start, as it said itself. */
  fault: readonly string[] | undefined;
  /** Milliseconds that its stop may take. */
  stopTime = 0;
  /** Reloads that there had been when it was made. */
  readonly reloads: number;
  readonly #process: ChildProcess;

  /** @param variables that the process gets in addition. */
  constructor(
    identity: WorkerIdentity,
    reloads: number,
    variables: Readonly<Record<string, string>>,
    log: ProcessLog,
    heard: Heard,
  ) {
    this.number = identity.number;
    this.reloads = reloads;
    const worker = cluster.fork({ ...variables, ...identityVariables(identity) });
    // What matters of it comes from the process, too.
    worker.on('error', () => undefined);
    this.#process = worker.process;
    this.pid = this.#process.pid;
    this.#process.on('message', (message, handle) => {
      const known = readFromWorker(message);
      if (known !== undefined) heard(this, known, handle);
    });
    this.ended = this.#end(log);
  }

  send(message: FromPrimary, handle?: unknown): void {
    // One that has just ended hears nothing, which is found out elsewhere.
    if (this.#process.connected) Reflect.apply(this.#process.send, this.#process, [message, handle, () => undefined]);
  }

  /** Has it stop, within bounds. @param others whether they go on. */
  stop(signal: string, others: boolean): void {
    this.isStopping = true;
    this.send({ kind: 'stop', signal, others });
    const killing = setTimeout(() => this.kill(), this.stopTime + EXTRA_STOP_TIME_MS);
    void this.ended.then(() => clearTimeout(killing));
  }

  kill(): void {
    this.#process.kill('SIGKILL');
  }

  async #end(log: ProcessLog): Promise<Ending> {
    const child = this.#process;
    const streams = [
      passLines(child.stdout, (line) => log.pass(line)),
      passLines(child.stderr, (line) => stderr.write(line)),
    ];
    const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
    const ending = await new Promise<Ending>((resolve) => {
      child.once('exit', (code, signal) => resolve({ code, signal }));
      child.on('error', (error) => child.pid === undefined && resolve({ code: null, signal: null, error }));
    });
    await withTimeout(LAST_OUTPUT_TIMEOUT_MS, closed);
    for (const end of streams) end();
    return ending;
  }
}

/** In words. */
export function howOf({ code, signal, error }: Ending): string {
  if (error !== undefined) return `could not be made (${error.message})`;
  return signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
}
