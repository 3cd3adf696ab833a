import type { ChildProcess } from 'node:child_process';
import { deferred, withTimeout } from '../../lib/time.ts';

/** Marks the service's own messages: plugins share a worker's process, and may send others. */
const MARK = 'signed-data-proxy';

/** A question or an answer; an answer may be undefined. */
interface Frame<T> {
  readonly number: number;
  readonly question?: T;
  readonly answer?: unknown;
}

/** One end of the channel between the primary process and a worker. */
export class Line<In, Out> {
  readonly #end: ChildProcess | NodeJS.Process;
  readonly #asked = new Map<number, (answer?: unknown) => void>();
  #last = 0;

  /** @param hear answers a question of the other end. */
  constructor(end: ChildProcess | NodeJS.Process, hear: (question: In) => unknown) {
    this.#end = end;
    end.addListener('message', async (message: unknown) => {
      const frame: Frame<In> | undefined = Object(message)[MARK];
      if (frame === undefined) return;
      const { number, question, answer } = frame;
      if (question === undefined) this.#asked.get(number)?.(answer);
      else this.#send({ number, answer: await hear(question) });
    });
    end.addListener('disconnect', () => {
      for (const answered of this.#asked.values()) answered();
    });
  }

  /** Asks the other end. @returns its answer; undefined if it is gone or takes longer than `milliseconds`. */
  async ask(question: Out, milliseconds: number): Promise<unknown> {
    if (!this.#end.connected) return undefined;
    this.#last += 1;
    const number = this.#last;
    const answer = deferred<unknown>();
    this.#asked.set(number, answer.resolve);
    this.#send({ number, question });
    return withTimeout(milliseconds, answer.promise, () => undefined).finally(() => this.#asked.delete(number));
  }

  #send(frame: Frame<Out>): void {
    // With a callback, sending to an end that is gone emits no error.
    if (this.#end.connected) this.#end.send?.({ [MARK]: frame }, undefined, undefined, () => undefined);
  }
}
