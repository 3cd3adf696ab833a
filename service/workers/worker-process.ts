import cluster from 'node:cluster';
import { createInterface } from 'node:readline';
import { deferred } from '../../lib/time/deferred.ts';
import { LATE, withTimeout } from '../../lib/time/with-timeout.ts';
import { Line } from './line.ts';
import { type FromPrimary, type FromWorker, IDENTITY, type Preparation, type WorkerIdentity } from './messages.ts';

/** Milliseconds that what a process wrote has to arrive once it has ended. */
const LAST_OUTPUT_TIMEOUT_MS = 1000;
/** Milliseconds that a worker has to load and start a config. */
const PREPARE_TIMEOUT_MS = 120_000;

/** What the primary process does with what comes of a worker. */
interface Heard {
  message(worker: WorkerProcess, message: FromWorker, handle: unknown): unknown;
  /** A line of its log, with its line feed. */
  line(text: string): void;
}

/** A worker, as the primary process knows it. */
export class WorkerProcess {
  readonly number: number;
  readonly pid: number | undefined;
  readonly line: Line<FromWorker, FromPrimary>;
  /** Resolves with how it ended, once all that it wrote is passed on. */
  readonly ended: Promise<string>;
  readonly #left = deferred<string>();
  /** Resolves when it was told to stop by itself. */
  readonly left = this.#left.promise;
  /** The fingerprint of its config, once it may listen. */
  config: string | undefined;
  /** When it became ready. */
  readySince: number | undefined;
  isStopping = false;
  /** Whether it is ended because it began before a reload. */
  isOutdated = false;
  /** Why it could not start, as it said itself. */
  fault: readonly string[] | undefined;
  /** Whether its end was none to worry about. */
  isClean = true;
  readonly #kill: () => void;

  /** @param variables that the process gets in addition. */
  constructor(identity: WorkerIdentity, variables: Readonly<Record<string, string>>, heard: Heard) {
    this.number = identity.number;
    const worker = cluster.fork({ ...variables, [IDENTITY]: JSON.stringify(identity) });
    // What matters of it comes from the process, too.
    worker.on('error', () => undefined);
    const child = worker.process;
    this.pid = child.pid;
    this.#kill = () => child.kill('SIGKILL');
    this.line = new Line(child, (message, handle) => heard.message(this, message, handle));
    if (child.stdout) createInterface(child.stdout).on('line', (text) => heard.line(`${text}\n`));
    const closed = new Promise((resolve) => child.once('close', resolve));
    const how = new Promise<string>((resolve) => {
      child.once('error', ({ message }) => resolve(`could not be made (${message})`));
      child.once('exit', (code, signal) => {
        this.isClean = code === 0 || this.readySince === undefined;
        resolve(signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`);
      });
    });
    this.ended = how.then(async (text) => {
      await withTimeout(LAST_OUTPUT_TIMEOUT_MS, closed);
      return text;
    });
  }

  /** Has it start the config that the files have now, beside the one in force. */
  async prepare(announces: boolean): Promise<Preparation> {
    const answer = await this.line.ask({ kind: 'prepare', announces }, PREPARE_TIMEOUT_MS);
    if (answer === LATE)
      return { lines: [`the worker has not prepared the new config within ${PREPARE_TIMEOUT_MS / 1000} s`] };
    return Object(answer ?? { lines: ['the worker ended while it prepared the new config'] });
  }

  /** @param others whether they go on: then another one takes its place. */
  stop(signal: string, others: boolean): void {
    this.isStopping = true;
    void this.line.tell({ kind: 'stop', signal, others });
    if (others) this.#left.resolve('left');
  }

  /** @param fault what it is blamed for. */
  kill(fault?: string): void {
    if (fault !== undefined) this.fault = [fault];
    this.#kill();
  }
}
