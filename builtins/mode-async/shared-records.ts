import { hash } from 'node:crypto';
import { SignedResponse } from '../../plugins-sdk/index.ts';
import {
  type SharedState,
  type StateArea,
  StateUnavailable,
  StateUnreadable,
  update,
} from '../../plugins-sdk/state.ts';
import { type AsyncRecord, type AsyncStore, type Ended, FINISHED_TTL_MS, isEnded, UNFINISHED_TTL_MS } from './store.ts';

/** Milliseconds between two attempts to write a record. */
const RETRY_DELAY_MS = 1000;
/** Milliseconds after a failure of the engine in which a lost record may be written again by the process of its request. */
const DOUBT_MS = 5000;

function textOf(record: AsyncRecord<SignedResponse>): string {
  return JSON.stringify(record.status === 'complete' ? { ...record, answer: record.answer.json } : record);
}

/** Parses a record of the engine. @throws Error for a text that this service has not written. */
function parse(text: string): AsyncRecord<SignedResponse> {
  const record = JSON.parse(text);
  if (record.status === 'complete') return { ...record, answer: SignedResponse.parse(record.answer) };
  if (!['pending', 'processing', 'failed'].includes(record.status)) throw new TypeError('no record');
  return record;
}

/**
 * Async requests that clients may poll at any process, with the states and methods of an {@link AsyncStore}. The process that
 * began a request counts it against its capacity, and writes its end. `get` and `reserve` reject while the engine is
 * unreachable; `end` waits for it.
 */
export class SharedRecords {
  /** The requests of this process, whose number this store bounds. */
  readonly #own: AsyncStore<SignedResponse>;
  readonly #area: StateArea;
  readonly #node: string;
  readonly #stateEngine: Pick<SharedState, 'sinceFailure'>;

  /** @param node the signer of the answers; records of other signers are not found. */
  constructor(own: AsyncStore<SignedResponse>, stateEngine: Pick<SharedState, 'area' | 'sinceFailure'>, node: string) {
    this.#own = own;
    this.#stateEngine = stateEngine;
    this.#area = stateEngine.area('async');
    this.#node = node;
  }

  async reserve(id: string): Promise<boolean> {
    if (!this.#own.reserve(id)) return false;
    let isNew = false;
    try {
      const options = { ttl: UNFINISHED_TTL_MS };
      const pending = textOf({ status: 'pending' });
      isNew = (await this.#area.compareAndSet(this.#key(id), undefined, pending, options)) === undefined;
      return isNew;
    } finally {
      if (!isNew) this.#own.forget(id);
    }
  }

  async processing(id: string): Promise<boolean> {
    const moved = this.#own.processing(id);
    if (moved) await this.#write(id, { status: 'processing' }).catch(() => undefined);
    return moved;
  }

  /** Writes the end. While the engine is unreachable it tries again, until the request expires. */
  async end(id: string, record: Ended<SignedResponse>): Promise<boolean> {
    let failure: StateUnavailable | undefined;
    while (this.#own.get(id)?.status === 'processing') {
      try {
        await this.#write(id, record);
        // It counts as read here, since every process finds it in the engine.
        return this.#own.end(id, record, true);
      } catch (error) {
        if (!(error instanceof StateUnavailable)) throw error;
        failure = error;
        await new Promise((done) => setTimeout(done, RETRY_DELAY_MS).unref());
      }
    }
    if (failure !== undefined) throw failure;
    return false;
  }

  async get(id: string, isShown = true): Promise<AsyncRecord<SignedResponse> | undefined> {
    const text = await this.#area.get(this.#key(id));
    // Marks a shown result as read, so that it may make room. The engine may have lost the record, or its end.
    const own = this.#own.get(id, isShown);
    if (text === undefined) {
      if (own === undefined && this.#stateEngine.sinceFailure() < DOUBT_MS)
        throw new StateUnavailable('the engine was away until a moment ago');
      return own;
    }
    try {
      const record = parse(text);
      return isEnded(record) ? record : (own ?? record);
    } catch {
      throw new StateUnreadable(`async:${this.#key(id)}`);
    }
  }

  /** Returns the key of a record. The ID is hashed: it is its client's secret, and the engine may log keys. */
  #key(id: string): string {
    return `${this.#node} ${hash('sha256', id, 'base64url')}`;
  }

  /** Writes a record. No other process does, and an earlier write that arrives late fails: it expects an older text. */
  async #write(id: string, record: AsyncRecord<SignedResponse>): Promise<void> {
    const ttl = isEnded(record) ? FINISHED_TTL_MS : UNFINISHED_TTL_MS;
    await update(this.#area, this.#key(id), () => textOf(record), { ttl });
  }
}
