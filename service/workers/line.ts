import type { ChildProcess } from 'node:child_process';
import { deferred, withTimeout } from '../../lib/time.ts';

/** Marks the service's own messages: plugins share a worker's process, and may send others. */
const MARK = 'signed-data-proxy';

/** A question or an answer; an answer may be undefined. */
interface Frame {
  readonly number: number;
  readonly question?: unknown;
  readonly answer?: unknown;
}

/** Asks the other end. @returns its answer; undefined if it is gone or takes longer than `milliseconds`. */
export type Ask<Question> = (question: Question, milliseconds: number) => Promise<unknown>;

/** Opens one end of the channel between the primary process and a worker. @param hear answers the other end's questions. */
export function openLine<In, Out>(end: ChildProcess | NodeJS.Process, hear: (question: In) => unknown): Ask<Out> {
  const asked = new Map<number, (answer?: unknown) => void>();
  let last = 0;
  // With a callback, sending to an end that is gone emits no error.
  const send = (frame: Frame) => end.send?.({ [MARK]: frame }, undefined, undefined, () => undefined);
  end.addListener('message', async (message: unknown) => {
    const { number, question, answer } = Object(message)[MARK] ?? {};
    if (question === undefined) asked.get(number)?.(answer);
    else send({ number, answer: await hear(question) });
  });
  end.addListener('disconnect', () => {
    for (const answered of asked.values()) answered();
  });
  return async (question, milliseconds) => {
    if (!end.connected) return undefined;
    last += 1;
    const number = last;
    const answer = deferred<unknown>();
    asked.set(number, answer.resolve);
    send({ number, question });
    return withTimeout(milliseconds, answer.promise, () => undefined).finally(() => asked.delete(number));
  };
}
