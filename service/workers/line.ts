import type { ChildProcess } from 'node:child_process';
import { withTimeout } from '../../lib/time/with-timeout.ts';

/** Plugins share a worker's process, and could send anything: messages without this are theirs. */
const MARK = 'signed-data-proxy';

/** An answer has the number of what was asked; what is only told has none. */
interface Frame<T> {
  readonly line: typeof MARK;
  readonly value: T;
  readonly number?: number | undefined;
  readonly isAnswer?: boolean;
}

function isFrame<T>(message: unknown): message is Frame<T> {
  return Object(message).line === MARK;
}

/** One end of the channel between the primary process and a worker. */
export class Line<In, Out> {
  readonly #end: ChildProcess | NodeJS.Process;
  readonly #asked = new Map<number | undefined, (answer: unknown) => void>();
  #last = 0;

  /** @param hear what it returns is the answer, where one is asked for. */
  constructor(end: ChildProcess | NodeJS.Process, hear: (message: In) => unknown) {
    this.#end = end;
    end.addListener('message', async (frame: unknown) => {
      if (!isFrame<In>(frame)) return;
      const { value, number, isAnswer } = frame;
      if (isAnswer) this.#asked.get(number)?.(value);
      else this.#send({ line: MARK, value: await hear(value), number, isAnswer: true });
    });
    end.addListener('disconnect', () => {
      for (const answer of this.#asked.values()) answer(undefined);
    });
  }

  tell(value: Out): void {
    this.#send({ line: MARK, value });
  }

  /** @returns the answer: nothing from an end that is gone, and LATE after these milliseconds. */
  async ask(value: Out, milliseconds: number): Promise<unknown> {
    if (!this.#end.connected) return undefined;
    this.#last += 1;
    const number = this.#last;
    const answered = new Promise<unknown>((resolve) => this.#asked.set(number, resolve));
    this.#send({ line: MARK, value, number });
    return withTimeout(milliseconds, answered).finally(() => this.#asked.delete(number));
  }

  #send(frame: Frame<unknown>): void {
    // With a callback an end that is gone is no error.
    if (this.#end.connected) this.#end.send?.(frame, undefined, undefined, () => undefined);
  }
}
