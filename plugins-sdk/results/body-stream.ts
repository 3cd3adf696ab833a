import { errorForLog, isRefusal, Refusal } from '../../kernel/refusal.ts';
import type { BodyStream } from '../../kernel/values.ts';

/** Returns whether a response body is a stream. */
export function isStream(body: unknown): body is AsyncIterable<unknown> {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}

/** A plugin's streaming body. Its errors name the plugin; a chunk that is neither text nor bytes is an error, too. */
export class CheckedStream implements BodyStream {
  readonly #body: AsyncIterable<unknown>;
  readonly #plugin: string;

  constructor(body: AsyncIterable<unknown>, plugin: string) {
    this.#body = body;
    this.#plugin = plugin;
  }

  [Symbol.asyncIterator](): AsyncIterator<string | Uint8Array> {
    let made: AsyncIterator<unknown> | undefined;
    const iterator = () => {
      made ??= this.#body[Symbol.asyncIterator]();
      return made;
    };
    return {
      next: () => this.#named(async () => chunkOf(await iterator().next())),
      return: () => this.#named(async () => ({ done: true, value: await iterator().return?.() })),
    };
  }

  async #named<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (isRefusal(error)) throw error;
      throw new Refusal(500, 'Internal server error', { reason: `plugin "${this.#plugin}": ${errorForLog(error)}` });
    }
  }
}

function chunkOf({ done, value }: IteratorResult<unknown>): IteratorResult<string | Uint8Array> {
  if (done) return { done, value: undefined };
  if (typeof value === 'string' || value instanceof Uint8Array) return { done: false, value };
  throw new TypeError('a chunk of a stream is text or bytes');
}
