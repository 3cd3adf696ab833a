import { setTimeout } from 'node:timers/promises';
import { DEFAULT_TIMEOUT_MS, keys } from '../../plugins-sdk/config.ts';
import { type Endpoint, type Exchange, type Question, SignedResponse } from '../../plugins-sdk/index.ts';
import { randomId, requireAnswer, type StateArea, type Wanted } from '../../plugins-sdk/state.ts';
import type { Found } from '../shared/cache-entries.ts';

/** Milliseconds between two looks whether another process has the answer. */
const POLL_INTERVAL_MS = 50;
/** Bytes of answers that this process has in the engine at most: it is not only theirs. */
const MOST_BYTES = 64 * 1024 * 1024;

/** The right to ask the upstream for an answer, of all processes. */
export interface Lock {
  /** Stores the answer, for so many milliseconds, and then lets others go on. */
  store(answer: SignedResponse, maxAge: number): void;
  release(): void;
}

/** An answer of another process, or the right to make one; neither where the engine is away or the wait was too long. */
export interface Search {
  readonly found?: Omit<Found<SignedResponse>, 'isGood'>;
  readonly lock?: Lock;
}

/** What is asked of an endpoint, by those who wait for its answer. */
type Asking = Pick<Exchange, 'endpoint' | 'clientSignal'>;

/** How many timeouts of a call other processes are waited for: as long as one of theirs may take, with its wait for a slot. */
const WAIT_IN_TIMEOUTS = 2;

/** Milliseconds for which answers that other processes make are waited for. */
export function longestWaitOf(endpoint: Endpoint): number {
  return WAIT_IN_TIMEOUTS * (keys.timeout.of(endpoint) ?? DEFAULT_TIMEOUT_MS);
}

const lockOf = (key: string) => `lock ${key}`;

/** Cached answers of all processes that share an engine: of those that miss one together, one asks the upstream. */
export class ReplicaAnswers {
  readonly #area: StateArea;
  readonly #node: string;
  readonly #now: () => number;
  /** What this process has in the engine, the oldest first. */
  readonly #stored = new Map<string, { readonly until: number; readonly size: number }>();
  #bytes = 0;

  /** @param service whose answers they are, and its clock in epoch milliseconds. */
  constructor(area: StateArea, service: { readonly node: string; now(): number }) {
    this.#area = area;
    this.#node = service.node;
    this.#now = () => service.now();
  }

  /**
   * @param key of the answer; that of another signer or config is another one.
   * @param maxAge milliseconds that answers are kept.
   */
  async search(key: string, maxAge: number, question: Question, { endpoint, clientSignal }: Asking): Promise<Search> {
    const longestWait = longestWaitOf(endpoint);
    const began = performance.now();
    const look = async () => this.#found(await this.#area.get(key), maxAge, { endpointId: endpoint.id, question });
    try {
      for (;;) {
        const found = await look();
        if (found !== undefined) return { found };
        const lock = await this.#lock(key, longestWait);
        if (lock !== undefined) return await again(look, lock);
        if (performance.now() - began >= longestWait || clientSignal.aborted) return {};
        await setTimeout(POLL_INTERVAL_MS);
      }
    } catch {
      return {};
    }
  }

  /** @param ttl milliseconds after which the lock of a process that died is free. */
  async #lock(key: string, ttl: number): Promise<Lock | undefined> {
    const token = randomId();
    const [area, name] = [this.#area, lockOf(key)];
    if ((await area.compareAndSet(name, undefined, token, { ttl })) !== undefined) return undefined;
    const ignore = () => undefined;
    const release = () => void area.compareAndSet(name, token, undefined).catch(ignore);
    return {
      release,
      store: (answer, maxAge) => void this.#store(key, answer, maxAge).catch(ignore).finally(release),
    };
  }

  async #store(key: string, { json }: SignedResponse, maxAge: number): Promise<void> {
    if (!this.#hasRoom(key, json.length, maxAge)) return;
    await this.#area.compareAndSet(key, undefined, `${this.#now()} ${json}`, { ttl: maxAge });
  }

  #hasRoom(key: string, size: number, maxAge: number): boolean {
    const now = performance.now();
    for (const [known, entry] of this.#stored) {
      if (known !== key && entry.until > now) break;
      this.#stored.delete(known);
      this.#bytes -= entry.size;
    }
    if (this.#bytes + size > MOST_BYTES) return false;
    this.#stored.set(key, { until: now + maxAge, size });
    this.#bytes += size;
    return true;
  }

  /**
   * How old it is, its maker's clock says, which may differ from this one's; that it is not too old, the engine's does. One that is
   * no answer to this question, or of this clock's future, counts as none.
   */
  #found(text: string | undefined, maxAge: number, wanted: Wanted): Search['found'] {
    if (text === undefined) return undefined;
    const [madeAt = ''] = text.split(' ', 1);
    const left = maxAge - (this.#now() - Number(madeAt));
    const value = this.#answerIn(text.slice(madeAt.length + 1), wanted);
    return value && { value, ttl: Math.min(Math.max(Number.isFinite(left) ? left : 1, 1), maxAge) };
  }

  #answerIn(json: string, wanted: Wanted): SignedResponse | undefined {
    try {
      const answer = SignedResponse.parse(json);
      requireAnswer(answer, wanted, { signers: [this.#node], now: this.#now });
      return answer;
    } catch {
      return undefined;
    }
  }
}

/** Another process may have stored the answer and let go of the lock since the look before. */
async function again(look: () => Promise<Search['found']>, lock: Lock): Promise<Search> {
  try {
    const found = await look();
    if (found === undefined) return { lock };
    lock.release();
    return { found };
  } catch (error) {
    lock.release();
    throw error;
  }
}
