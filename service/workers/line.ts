import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { LATE, withTimeout } from '../../lib/time.ts';

/** Marks the service's own messages: plugins share a worker's process, and may send others. */
const MARK = 'signed-data-proxy';

/** A question or an answer; an answer may be undefined. */
interface Frame {
  readonly id: string;
  readonly question?: unknown;
  readonly answer?: unknown;
}

/** Asks the other end. @returns its answer; undefined if it is gone or takes longer than `milliseconds`. */
export type Ask<Question> = (question: Question, milliseconds: number) => Promise<unknown>;

/** Opens one end of the channel between the primary process and a worker. @param hear answers the other end's questions. */
export function openLine<In, Out>(end: ChildProcess | NodeJS.Process, hear: (question: In) => unknown): Ask<Out> {
  const asked = new Map<string, (answer?: unknown) => void>();
  // With a callback, sending to an end that is gone emits no error.
  const send = (frame: Frame) => end.send?.({ [MARK]: frame }, undefined, undefined, () => undefined);
  end.addListener('message', async (message: unknown) => {
    const { id, question, answer } = Object(message)[MARK] ?? {};
    if (question === undefined) asked.get(id)?.(answer);
    else send({ id, answer: await hear(question) });
  });
  end.addListener('disconnect', () => {
    for (const answered of asked.values()) answered();
  });
  return async (question, milliseconds) => {
    if (!end.connected) return undefined;
    const id = randomUUID();
    const answer = new Promise((resolve) => asked.set(id, resolve));
    send({ id, question });
    const said = await withTimeout(milliseconds, answer);
    asked.delete(id);
    return said === LATE ? undefined : said;
  };
}
