import type { ChildProcess } from 'node:child_process';
import { withTimeout } from '../../lib/time/with-timeout.ts';

/** Plugins share a worker's process, and could send anything: messages without this are theirs. */
const MARK = 'signed-data-proxy';

/** `asks` numbers a message that is to be answered, and `answers` is the number of the message that an answer is to. */
interface Frame<T> {
  readonly line: typeof MARK;
  readonly value: T;
  readonly asks?: number;
  readonly answers?: number;
}

function isFrame<T>(message: unknown): message is Frame<T> {
  return Object(message).line === MARK;
}

/** One end of the channel between the primary process and a worker. */
export class Line<In, Out> {
  readonly #end: ChildProcess | NodeJS.Process;
  readonly #asked = new Map<number, (answer: unknown) => void>();
  #last = 0;

  /** @param hear what it returns is the answer, where one is asked for. */
  constructor(end: ChildProcess | NodeJS.Process, hear: (message: In) => unknown) {
    this.#end = end;
    end.addListener('message', async (frame: unknown) => {
      if (!isFrame<In>(frame)) return;
      if (frame.answers !== undefined) return this.#asked.get(frame.answers)?.(frame.value);
      const value = await hear(frame.value);
      if (frame.asks !== undefined) void this.#send({ line: MARK, value, answers: frame.asks });
    });
    end.addListener('disconnect', () => {
      for (const answer of this.#asked.values()) answer(undefined);
    });
  }

  /** Resolves once it is sent, or when the other end is gone. */
  tell(value: Out): Promise<void> {
    return this.#send({ line: MARK, value });
  }

  /** @returns the answer: nothing from an end that is gone, and LATE after these milliseconds. */
  async ask(value: Out, milliseconds: number): Promise<unknown> {
    if (!this.#end.connected) return undefined;
    this.#last += 1;
    const asks = this.#last;
    const answered = new Promise<unknown>((resolve) => this.#asked.set(asks, resolve));
    void this.#send({ line: MARK, value, asks });
    return withTimeout(milliseconds, answered).finally(() => this.#asked.delete(asks));
  }

  #send(frame: Frame<unknown>): Promise<void> {
    return new Promise((resolve) => {
      if (!this.#end.connected) resolve();
      else this.#end.send?.(frame, undefined, undefined, () => resolve());
    });
  }
}
