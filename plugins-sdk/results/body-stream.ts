import { errorForLog, isRefusal, Refusal } from '../../kernel/refusal.ts';
import type { BodyStream } from '../../kernel/values.ts';

/** Returns a plugin's streaming body with its errors in the plugin's name. A chunk that is neither text nor bytes is an error, too. */
export function checkedStream(body: AsyncIterable<unknown>, plugin: string): BodyStream {
  const named = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      if (isRefusal(error)) throw error;
      throw new Refusal(500, 'Internal server error', { reason: `plugin "${plugin}": ${errorForLog(error)}` });
    }
  };
  return {
    [Symbol.asyncIterator]() {
      let made: AsyncIterator<unknown> | undefined;
      const iterator = () => {
        made ??= body[Symbol.asyncIterator]();
        return made;
      };
      return {
        next: () => named(async () => chunkOf(await iterator().next())),
        return: () => named(async () => ({ done: true, value: await iterator().return?.() })),
      };
    },
  };
}

function chunkOf({ done, value }: IteratorResult<unknown>): IteratorResult<string | Uint8Array> {
  if (done) return { done, value: undefined };
  if (typeof value === 'string' || value instanceof Uint8Array) return { done: false, value };
  throw new TypeError('a chunk of a stream is text or bytes');
}
