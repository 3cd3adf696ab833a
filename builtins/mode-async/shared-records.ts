import { hash } from 'node:crypto';
import { SignedResponse } from '../../plugins-sdk/index.ts';
import {
  type SharedState,
  type StateArea,
  StateUnavailable,
  StateUnreadable,
  update,
} from '../../plugins-sdk/state.ts';
import type { AsyncRecord, AsyncRecords, AsyncStore, Headers } from './store.ts';

/** Milliseconds that a request is kept from its start while it is not finished, also where its process has died. */
const UNFINISHED_TTL_MS = 600_000;
/** Milliseconds that a result is kept from its completion or failure. */
const FINISHED_TTL_MS = 60_000;
/** Milliseconds between two tries to write what could not be written. */
const RETRY_DELAY_MS = 1000;
/** Milliseconds from a failure of the engine in which what is not there may be written again by the process that works on it. */
const DOUBT_MS = 5000;

const COMPLETE = 'complete ';
const FAILED = 'failed ';
/** Before a line of JSON, where an end has headers. */
const HEADERS = 'headers ';

function isEnd(text: string): boolean {
  return [COMPLETE, FAILED, HEADERS].some((begin) => text.startsWith(begin));
}

function withHeaders(headers: Headers | undefined, end: string): string {
  return headers === undefined ? end : `${HEADERS}${JSON.stringify(headers)}\n${end}`;
}

/** What stands in the engine, read. @throws Error for what nobody here wrote. */
function parse(text: string): AsyncRecord<SignedResponse> {
  if (text.startsWith(HEADERS)) {
    const line = text.indexOf('\n');
    return { ...parse(text.slice(line + 1)), headers: JSON.parse(text.slice(HEADERS.length, line)) };
  }
  if (text.startsWith(COMPLETE))
    return { status: 'complete', answer: SignedResponse.parse(text.slice(COMPLETE.length)) };
  if (text.startsWith(FAILED)) return { status: 'failed', error: text.slice(FAILED.length) };
  if (text !== 'pending' && text !== 'processing') throw new TypeError('no record');
  return { status: text };
}

/**
 * Async requests that any process can be asked for. The process that began one has room for it and writes its end. Methods that
 * read, and `reserve`, reject while the engine is away; those that write an end wait for it.
 */
export class SharedRecords implements AsyncRecords<SignedResponse> {
  /** The requests of this process: their number is bounded here. */
  readonly #own: AsyncStore<true>;
  readonly #area: StateArea;
  readonly #node: string;
  readonly #stateEngine: Pick<SharedState, 'sinceFailure'>;

  /** @param node whose answers they are: they are nobody else's. */
  constructor(own: AsyncStore<true>, stateEngine: Pick<SharedState, 'area' | 'sinceFailure'>, node: string) {
    this.#own = own;
    this.#stateEngine = stateEngine;
    this.#area = stateEngine.area('async');
    this.#node = node;
  }

  async reserve(id: string): Promise<boolean> {
    if (!this.#own.reserve(id)) return false;
    try {
      const options = { ttl: UNFINISHED_TTL_MS };
      if ((await this.#area.compareAndSet(this.#key(id), undefined, 'pending', options)) === undefined) return true;
    } catch (error) {
      this.#own.forget(id);
      throw error;
    }
    this.#own.forget(id);
    return false;
  }

  async processing(id: string): Promise<boolean> {
    const moved = this.#own.processing(id);
    if (moved) await this.#write(id, 'processing', UNFINISHED_TTL_MS).catch(() => undefined);
    return moved;
  }

  async complete(id: string, answer: SignedResponse, headers?: Headers): Promise<boolean> {
    return (await this.#finish(id, withHeaders(headers, COMPLETE + answer.json))) && this.#own.complete(id, true);
  }

  async fail(id: string, error: string, headers?: Headers): Promise<boolean> {
    return (await this.#finish(id, withHeaders(headers, FAILED + error))) && this.#own.fail(id, error);
  }

  async get(id: string): Promise<AsyncRecord<SignedResponse> | undefined> {
    const text = await this.#area.get(this.#key(id));
    // One that was read may make room.
    const own = this.#own.get(id);
    if (text === undefined) {
      // The engine may have lost what is under way here.
      if (own?.status === 'pending' || own?.status === 'processing') return { status: own.status };
      if (this.#stateEngine.sinceFailure() < DOUBT_MS)
        throw new StateUnavailable('the engine was away until a moment ago');
      return undefined;
    }
    try {
      return parse(text);
    } catch {
      throw new StateUnreadable(`async:${this.#key(id)}`);
    }
  }

  /** An id is a secret of its client, which the engine may log. */
  #key(id: string): string {
    return `${this.#node} ${hash('sha256', id, 'base64url')}`;
  }

  /** Writes the end, as often as it takes, for as long as the request may be under way. */
  async #finish(id: string, text: string): Promise<boolean> {
    let failure: StateUnavailable | undefined;
    while (this.#own.get(id)?.status === 'processing') {
      try {
        await this.#write(id, text, FINISHED_TTL_MS);
        return true;
      } catch (error) {
        if (!(error instanceof StateUnavailable)) throw error;
        failure = error;
        await new Promise((done) => setTimeout(done, RETRY_DELAY_MS).unref());
      }
    }
    if (failure !== undefined) throw failure;
    return false;
  }

  /** No other process writes it. What was begun before must not undo an end. */
  async #write(id: string, text: string, ttl: number): Promise<void> {
    await update(this.#area, this.#key(id), (seen) => (seen !== undefined && isEnd(seen) ? seen : text), { ttl });
  }
}
