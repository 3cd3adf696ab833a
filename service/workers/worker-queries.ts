import { withTimeout } from '../../lib/time/with-timeout.ts';
import type { Log } from '../../plugins-sdk/log.ts';
import type { WorkerProcess } from './worker-process.ts';

/** Milliseconds that a worker has to answer another. */
const ANSWER_TIMEOUT_MS = 2000;

interface WorkerQuery {
  readonly waitingFor: Set<WorkerProcess>;
  readonly values: unknown[];
  end(): void;
}

/** What one worker asks the others, passed on and collected. */
export class WorkerQueries {
  readonly #log: Log;
  readonly #open = new Map<number, WorkerQuery>();
  #last = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  async gather(topic: string, workers: readonly WorkerProcess[]): Promise<readonly unknown[]> {
    this.#last += 1;
    const id = this.#last;
    const waitingFor = new Set(workers);
    const values: unknown[] = [];
    const answered = new Promise<void>((end) => {
      this.#open.set(id, { waitingFor, values, end });
      if (waitingFor.size === 0) end();
    });
    for (const worker of workers) worker.send({ kind: 'ask', id, topic });
    await withTimeout(ANSWER_TIMEOUT_MS, answered);
    this.#open.delete(id);
    for (const { number } of waitingFor)
      this.#log.warn('a worker did not answer another in time', { worker: number, topic });
    return values;
  }

  answered(worker: WorkerProcess, id: number, value: unknown): void {
    const query = this.#open.get(id);
    if (query?.waitingFor.delete(worker) !== true) return;
    query.values.push(value);
    if (query.waitingFor.size === 0) query.end();
  }

  /** One that has ended answers nobody. */
  left(worker: WorkerProcess): void {
    for (const [id, { waitingFor }] of this.#open) if (waitingFor.has(worker)) this.answered(worker, id, undefined);
  }
}
