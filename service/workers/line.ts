import type { ChildProcess } from 'node:child_process';
import { type LATE, withTimeout } from '../../lib/time/with-timeout.ts';

/** Plugins share a worker's process, and could send anything: messages without this are theirs. */
const MARK = 'signed-data-proxy';

interface Frame<T> {
  readonly line: typeof MARK;
  readonly value: T;
  /** Of a message that is to be answered. */
  readonly asks?: number;
  /** Of an answer: which message it is to. */
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
  constructor(end: ChildProcess | NodeJS.Process, hear: (message: In, handle: unknown) => unknown) {
    this.#end = end;
    const heard = async (frame: unknown, handle: unknown) => {
      if (!isFrame<In>(frame)) return;
      if (frame.answers !== undefined) return this.#asked.get(frame.answers)?.(frame.value);
      const value = await hear(frame.value, handle);
      if (frame.asks !== undefined) void this.#send({ line: MARK, value, answers: frame.asks });
    };
    end.addListener('message', heard);
    end.addListener('disconnect', () => {
      for (const end of this.#asked.values()) end(undefined);
    });
  }

  /** Resolves once it is sent, or when nobody is there to hear it. */
  tell(value: Out, handle?: unknown): Promise<void> {
    return this.#send({ line: MARK, value }, handle);
  }

  /** @returns the answer: nothing from an end that is gone, and LATE after these milliseconds. */
  async ask(value: Out, milliseconds: number): Promise<unknown> {
    this.#last += 1;
    const asks = this.#last;
    const answered = new Promise<unknown>((resolve) => this.#asked.set(asks, resolve));
    if (!this.#end.connected) return undefined;
    void this.#send({ line: MARK, value, asks });
    const answer: unknown | typeof LATE = await withTimeout(milliseconds, answered);
    this.#asked.delete(asks);
    return answer;
  }

  #send(frame: Frame<unknown>, handle?: unknown): Promise<void> {
    const { connected, send } = this.#end;
    return new Promise((resolve) => {
      if (!connected || send === undefined) resolve();
      else Reflect.apply(send, this.#end, [frame, handle, () => resolve()]);
    });
  }
}
