import type { ChildProcess } from 'node:child_process';
import { LATE, withTimeout } from '../../lib/time/with-timeout.ts';

/** Plugins share a worker's process, and could send anything: messages without this are theirs. */
const MARK = 'signed-data-proxy';

interface Frame<T = unknown> {
  readonly line: typeof MARK;
  readonly number: number;
  /** Absent in an answer. */
  readonly question?: T;
  readonly answer?: unknown;
}

function isFrame<T>(message: unknown): message is Frame<T> {
  return Object(message).line === MARK;
}

/** One end of the channel between the primary process and a worker. */
export class Line<In, Out> {
  readonly #end: ChildProcess | NodeJS.Process;
  readonly #asked = new Map<number, (answer?: unknown) => void>();
  #last = 0;

  /** @param hear returns the answer to a question. */
  constructor(end: ChildProcess | NodeJS.Process, hear: (question: In) => unknown) {
    this.#end = end;
    end.addListener('message', async (frame: unknown) => {
      if (!isFrame<In>(frame)) return;
      const { number, question, answer } = frame;
      if (question === undefined) this.#asked.get(number)?.(answer);
      else this.#send({ line: MARK, number, answer: await hear(question) });
    });
    end.addListener('disconnect', () => {
      for (const answered of this.#asked.values()) answered();
    });
  }

  /** @returns the answer; nothing from an end that is gone, or that takes longer. */
  async ask(question: Out, milliseconds: number): Promise<unknown> {
    if (!this.#end.connected) return undefined;
    this.#last += 1;
    const number = this.#last;
    const answered = new Promise<unknown>((resolve) => this.#asked.set(number, resolve));
    this.#send({ line: MARK, number, question });
    const answer = await withTimeout(milliseconds, answered);
    this.#asked.delete(number);
    return answer === LATE ? undefined : answer;
  }

  #send(frame: Frame): void {
    // With a callback an end that is gone is no error.
    if (this.#end.connected) this.#end.send?.(frame, undefined, undefined, () => undefined);
  }
}
