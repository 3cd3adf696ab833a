import { hash } from 'node:crypto';
import { SignedResponse, type StateArea, StateUnavailable } from '../../plugins-sdk/index.ts';
import { type SharedState, StateUnreadable } from '../../plugins-sdk/state/area.ts';
import type { AsyncRecord, AsyncRecords, AsyncStore, Headers } from './store.ts';

/** Milliseconds after which a request whose process died is gone, and between two renewals of one that lives. */
const LEASE_MS = 30_000;
const RENEWAL_INTERVAL_MS = 10_000;
/** Milliseconds that a result is kept from its completion or failure. */
const FINISHED_TTL_MS = 60_000;
/** Milliseconds between two tries to write what could not be written. */
const RETRY_DELAY_MS = 1000;
/** Milliseconds from a failure of the engine in which what is not there may be written again by whoever works on it. */
const DOUBT_MS = 5000;
/** Tries to write where another value stands than was expected. */
const TRIES = 5;

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
 * Async requests that any process can be asked for. Who began one has room for it, keeps it alive, and writes its end. Methods
 * that read, and `reserve`, reject while the engine is away; those that write wait for it.
 */
export class SharedRecords implements AsyncRecords<SignedResponse> {
  /** The requests of this process: their number is bounded here. */
  readonly #own: AsyncStore<true>;
  readonly #area: StateArea;
  readonly #node: string;
  /** What stands in the engine, by id, of requests that are not finished. */
  readonly #written = new Map<string, string>();
  #renewing: NodeJS.Timeout | undefined;
  #isStopped = false;
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
      if ((await this.#area.compareAndSet(this.#key(id), undefined, 'pending', { ttl: LEASE_MS })) === undefined) {
        this.#written.set(id, 'pending');
        if (this.#renewing === undefined) this.#renewIn(RENEWAL_INTERVAL_MS);
        return true;
      }
    } catch (error) {
      this.#own.forget(id);
      throw error;
    }
    this.#own.forget(id);
    return false;
  }

  async processing(id: string): Promise<boolean> {
    const moved = this.#own.processing(id);
    if (moved) await this.#write(id, 'processing', LEASE_MS).catch(() => undefined);
    return moved;
  }

  async complete(id: string, answer: SignedResponse, headers?: Headers): Promise<boolean> {
    return (await this.#finish(id, withHeaders(headers, COMPLETE + answer.json))) && this.#own.complete(id, true);
  }

  async fail(id: string, error: string, headers?: Headers): Promise<boolean> {
    return (await this.#finish(id, withHeaders(headers, FAILED + error))) && this.#own.fail(id, error);
  }

  async get(id: string): Promise<AsyncRecord<SignedResponse> | undefined> {
    const kept = await this.#area.get(this.#key(id));
    // One that was read may make room.
    const own = this.#own.get(id);
    // The lease of what is under way may have ended while the engine was away: it is there again soon.
    const text = kept ?? (own && this.#written.get(id));
    if (text === undefined) {
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

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#renewing);
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
        this.#written.delete(id);
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

  #renewIn(delay: number): void {
    if (this.#isStopped) return;
    this.#renewing = setTimeout(async () => {
      // What an engine that was away has forgotten is there again soon after its return.
      const isDone = await this.#renew();
      this.#renewIn(isDone ? RENEWAL_INTERVAL_MS : RETRY_DELAY_MS);
    }, delay).unref();
  }

  /** @returns whether the engine took all of it. */
  async #renew(): Promise<boolean> {
    const renewals = [...this.#written].map(async ([id, text]) => {
      if (this.#own.get(id) === undefined) this.#written.delete(id);
      else await this.#write(id, text, LEASE_MS);
    });
    const results = await Promise.allSettled(renewals);
    return results.every(({ status }) => status === 'fulfilled');
  }

  /**
   * Nobody else writes it. Three things make a difference: an answer of the engine that was lost, a lease that ended
   * while it was away, and an end. A renewal that was sent before must not undo that end.
   */
  async #write(id: string, text: string, ttl: number): Promise<void> {
    let seen = this.#written.get(id);
    for (let tries = 0; tries < TRIES; tries += 1) {
      const standing = await this.#area.compareAndSet(this.#key(id), seen, text, { ttl });
      if (standing === undefined) {
        if (this.#written.has(id)) this.#written.set(id, text);
        return;
      }
      seen = standing.value;
      if (seen !== undefined && isEnd(seen)) return;
    }
  }
}
