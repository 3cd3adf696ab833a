import { withTimeout } from '../../lib/time/with-timeout.ts';
import type { FromWorker } from './messages.ts';
import type { WorkerProcess } from './worker-process.ts';

/** Milliseconds that a worker has to load and start a config. */
const PREPARE_TIMEOUT_MS = 120_000;

type Answer = Extract<FromWorker, { kind: 'prepared' | 'refused' }>;
type Refusal = Pick<Extract<Answer, { kind: 'refused' }>, 'kind' | 'lines'>;

/** Why not all workers have the new config. */
export interface Refused {
  readonly worker: WorkerProcess;
  readonly lines: readonly string[];
}

/** Reloads of all workers, or of none: one tries the new config, then the others do, before the first puts it in force. */
export class JointReload {
  readonly #waiting = new Map<WorkerProcess, (answer: Answer | Refusal) => void>();
  #last = 0;

  /** @returns the fingerprint of the config that is in force from now on. */
  async run(workers: readonly WorkerProcess[]): Promise<string | Refused> {
    this.#last += 1;
    const id = this.#last;
    const [first, ...others] = workers;
    const answers = first === undefined ? [] : [await this.#prepare(first, id, true)];
    const config = answers[0]?.config ?? '';
    if (answers[0]?.lines === undefined)
      answers.push(...(await Promise.all(others.map((worker) => this.#prepare(worker, id, false)))));
    const refused =
      answers.find((answer) => answer.lines !== undefined) ?? answers.find((answer) => answer.config !== config);
    for (const { worker } of answers) worker.send({ kind: refused === undefined ? 'commit' : 'abort', id });
    if (refused === undefined) return config;
    return { worker: refused.worker, lines: refused.lines ?? ['the config changed while the workers read it'] };
  }

  answered(worker: WorkerProcess, answer: Answer): void {
    if (answer.id === this.#last) this.#waiting.get(worker)?.(answer);
  }

  left(worker: WorkerProcess): void {
    this.#waiting.get(worker)?.(refusal('ended while it prepared the new config'));
  }

  async #prepare(worker: WorkerProcess, id: number, announces: boolean) {
    const answered = new Promise<Answer | Refusal>((resolve) => this.#waiting.set(worker, resolve));
    worker.send({ kind: 'prepare', id, announces });
    const late = () => refusal(`has not prepared the new config within ${PREPARE_TIMEOUT_MS / 1000} s`);
    const answer = await withTimeout(PREPARE_TIMEOUT_MS, answered, late);
    this.#waiting.delete(worker);
    return answer.kind === 'prepared'
      ? { worker, config: answer.config, lines: undefined }
      : { worker, config: undefined, lines: answer.lines };
  }
}

function refusal(what: string): Refusal {
  return { kind: 'refused', lines: [`the worker ${what}`] };
}
