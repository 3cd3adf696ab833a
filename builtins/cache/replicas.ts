import { setTimeout } from 'node:timers/promises';
import { type Endpoint, type Exchange, type Question, SignedResponse } from '../../plugins-sdk/index.ts';
import { randomId, requireAnswer, type StateArea, type Wanted } from '../../plugins-sdk/state.ts';
import type { Found } from '../shared/cache-entries.ts';
import { takeRoom } from '../shared/room.ts';
import { callTimeoutOf } from '../shared/upstream.ts';

/** Milliseconds between two checks whether another process has stored the answer. */
const POLL_INTERVAL_MS = 50;
/** Most bytes of answers with one `maxAge` that can be added to the engine at once: other state needs room there, too. */
const MOST_BYTES = 64 * 1024 * 1024;

/**
 * What a search found: an answer of another process, or none and the lock of its key, the right of one process among all to ask
 * the upstream. Neither if the engine is unreachable or the wait was too long.
 */
export interface Search {
  readonly found?: Omit<Found<SignedResponse>, 'isGood'>;
  /** Stores the answer that was made, if there is one, then releases the lock. */
  readonly unlock?: (made?: SignedResponse) => void;
}

/** The endpoint, and the signal that all waiting clients have left. */
type Asking = Pick<Exchange, 'endpoint' | 'clientSignal'>;

/** The longest wait for another process, in timeouts of the API: one for its wait for a slot, one for its call. */
const WAIT_IN_TIMEOUTS = 2;

/** Returns the longest wait for an answer that another process makes, in milliseconds. */
export const longestWaitOf = (endpoint: Endpoint): number => WAIT_IN_TIMEOUTS * callTimeoutOf(endpoint);

/** Cached answers of all processes that share an engine. When several miss the same one, one of them asks the upstream. */
export class ReplicaAnswers {
  readonly #area: StateArea;
  readonly #service: { readonly node: string; now(): number };

  /** @param service the signer of the answers, and the clock in epoch milliseconds. */
  constructor(area: StateArea, service: { readonly node: string; now(): number }) {
    this.#area = area;
    this.#service = service;
  }

  /**
   * Finds an answer, or locks its key, or waits for the process that has the lock.
   * @param key of the answer; it depends on the signer and the config.
   * @param maxAge milliseconds for which answers are kept.
   */
  async search(key: string, maxAge: number, question: Question, { endpoint, clientSignal }: Asking): Promise<Search> {
    const longestWait = longestWaitOf(endpoint);
    const began = performance.now();
    let unlock: Search['unlock'];
    try {
      for (;;) {
        const found = this.#found(await this.#area.get(key), maxAge, { endpointId: endpoint.id, question });
        if (found !== undefined) {
          unlock?.();
          return { found };
        }
        if (unlock !== undefined) return { unlock };
        unlock = await this.#lock(key, maxAge, longestWait);
        // Under the lock it looks again: another process may have stored the answer and released the lock since the last look.
        if (unlock !== undefined) continue;
        if (performance.now() - began >= longestWait || clientSignal.aborted) return {};
        await setTimeout(POLL_INTERVAL_MS);
      }
    } catch {
      unlock?.();
      return {};
    }
  }

  /** Locks a key, unless another process has. @param ttl milliseconds after which the lock of a process that died is free. */
  async #lock(key: string, maxAge: number, ttl: number): Promise<Search['unlock']> {
    const token = randomId();
    const [area, name] = [this.#area, `lock ${key}`];
    if ((await area.compareAndSet(name, undefined, token, { ttl })) !== undefined) return undefined;
    const end = async (made?: SignedResponse) => {
      if (made !== undefined) await this.#store(key, made, maxAge).catch(() => undefined);
      await area.compareAndSet(name, token, undefined);
    };
    return (made) => void end(made).catch(() => undefined);
  }

  async #store(key: string, { json }: SignedResponse, maxAge: number): Promise<void> {
    const limits = { [`bytes for ${maxAge} ms`]: { max: MOST_BYTES, window: maxAge } };
    const text = `${this.#service.now()} ${json}`;
    if (!(await takeRoom(this.#area, limits, Buffer.byteLength(key + text)))) return;
    await this.#area.compareAndSet(key, undefined, text, { ttl: maxAge });
  }

  /**
   * Reads a stored answer. Its age is estimated by its maker's clock, which may differ from this one; the engine's clock decides
   * when it expires. An answer of another endpoint or signer, by its receipt to another question, or from this clock's future is
   * ignored.
   */
  #found(text: string | undefined, maxAge: number, wanted: Wanted): Search['found'] {
    if (text === undefined) return undefined;
    const [madeAt = ''] = text.split(' ', 1);
    const left = maxAge - (this.#service.now() - Number(madeAt));
    const value = this.#answerIn(text.slice(madeAt.length + 1), wanted);
    return value && { value, ttl: Math.min(Math.max(Number.isFinite(left) ? left : 1, 1), maxAge) };
  }

  #answerIn(json: string, wanted: Wanted): SignedResponse | undefined {
    try {
      const answer = SignedResponse.parse(json);
      requireAnswer(answer, wanted, { signers: [this.#service.node], now: () => this.#service.now() });
      return answer;
    } catch {
      return undefined;
    }
  }
}
