import { withTimeout } from '../../plugins-sdk/lib/time/with-timeout.ts';
import type { Log } from '../../plugins-sdk/log.ts';
import type { WorkerProcess } from './worker-process.ts';

/** Milliseconds that a worker has to answer another. */
const ANSWER_TIMEOUT_MS = 2000;

interface Gathering {
  readonly waitingFor: Set<WorkerProcess>;
  readonly values: unknown[];
  end(): void;
}

/** What one worker asks the others, passed on and collected. */
export class Gatherings {
  readonly #log: Log;
  readonly #open = new Map<number, Gathering>();
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
    const gathering = this.#open.get(id);
    if (gathering?.waitingFor.delete(worker) !== true) return;
    gathering.values.push(value);
    if (gathering.waitingFor.size === 0) gathering.end();
  }

  /** One that has ended answers nobody. */
  left(worker: WorkerProcess): void {
    for (const [id, { waitingFor }] of this.#open) if (waitingFor.has(worker)) this.answered(worker, id, undefined);
  }
}
