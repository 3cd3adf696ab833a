import { hash } from 'node:crypto';
import { SignedResponse } from '../../plugins-sdk/index.ts';
import {
  type SharedState,
  type StateArea,
  StateUnavailable,
  StateUnreadable,
  update,
} from '../../plugins-sdk/state.ts';
import {
  type AsyncRecord,
  type AsyncRecords,
  type AsyncStore,
  type Ended,
  FINISHED_TTL_MS,
  isEnded,
  UNFINISHED_TTL_MS,
} from './store.ts';

/** Milliseconds between two tries to write what could not be written. */
const RETRY_DELAY_MS = 1000;
/** Milliseconds from a failure of the engine in which what is not there may be written again by the process that works on it. */
const DOUBT_MS = 5000;

function textOf(record: AsyncRecord<SignedResponse>): string {
  return JSON.stringify(record.status === 'complete' ? { ...record, answer: record.answer.json } : record);
}

/** What stands in the engine, read. @throws Error for what nobody here wrote. */
function parse(text: string): AsyncRecord<SignedResponse> {
  const record = JSON.parse(text);
  if (record.status === 'complete') return { ...record, answer: SignedResponse.parse(record.answer) };
  if (!['pending', 'processing', 'failed'].includes(record.status)) throw new TypeError('no record');
  return record;
}

/**
 * Async requests that any process can be asked for. The process that began one has room for it and writes its end. `get` and
 * `reserve` reject while the engine is away; `end` waits for it.
 */
export class SharedRecords implements AsyncRecords<SignedResponse> {
  /** The requests of this process: their number is bounded here. */
  readonly #own: AsyncStore<SignedResponse>;
  readonly #area: StateArea;
  readonly #node: string;
  readonly #stateEngine: Pick<SharedState, 'sinceFailure'>;

  /** @param node whose answers they are: they are nobody else's. */
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

  /** Writes the end, as often as it takes, for as long as the request may be under way. */
  async end(id: string, record: Ended<SignedResponse>): Promise<boolean> {
    let failure: StateUnavailable | undefined;
    while (this.#own.get(id)?.status === 'processing') {
      try {
        await this.#write(id, record);
        // Whoever asks for it finds it in the engine.
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
    // One that was read may make room, and the engine may have lost what is known here, or the end of it.
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

  /** An id is a secret of its client, which the engine may log. */
  #key(id: string): string {
    return `${this.#node} ${hash('sha256', id, 'base64url')}`;
  }

  /** No other process writes it, and a write from before that comes late finds another text than it expects. */
  async #write(id: string, record: AsyncRecord<SignedResponse>): Promise<void> {
    const ttl = isEnded(record) ? FINISHED_TTL_MS : UNFINISHED_TTL_MS;
    await update(this.#area, this.#key(id), () => textOf(record), { ttl });
  }
}
