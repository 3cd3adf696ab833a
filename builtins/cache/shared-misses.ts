import {
  type Awaitable,
  ContextKey,
  DEFAULT_TIMEOUT,
  type Exchange,
  keys,
  type Outcome,
  type Refusal,
  type SignedResponse,
  vainWait,
} from '../../plugins-sdk/index.ts';
import type { Found } from './entries.ts';
import type { Lock, ReplicaAnswers } from './replicas.ts';
import { type Joined, LATEST_CALL, type Leader, type Settlement, SingleFlight } from './single-flight.ts';

/** What the end of a leader's request means for its followers: nothing where its client has left, or may not have the answer. */
function settlementOf(outcome: Outcome, { abandoned }: Exchange): Settlement<SignedResponse, Refusal> {
  if (abandoned || outcome.kind === 'abandoned') return undefined;
  if (outcome.kind === 'signed') return { result: outcome.response };
  return outcome.refusal.stage === 'release' ? undefined : { failure: outcome.refusal };
}

/** What a request does that misses the cache: asks the upstream, shares another's answer or failure, or is abandoned meanwhile. */
export type Miss = 'miss' | 'shared' | 'abandoned';

/** Who is told what a look-up came to. */
export interface Told {
  hit(exchange: Exchange, found: Found<SignedResponse>, key: string): void;
  miss(exchange: Exchange, miss: Miss): void;
}

/** Requests that miss the cache for the same answer at the same time share one upstream call, those of other processes, too. */
export class SharedMisses {
  readonly #inFlight = new SingleFlight<SignedResponse, Refusal>();
  readonly #leader = new ContextKey<Leader<SignedResponse, Refusal>>('cache leader');
  readonly #lock = new ContextKey<Lock>('cache lock');
  readonly #told: Told;
  readonly #replicas: ReplicaAnswers | undefined;

  constructor(told: Told, replicas: ReplicaAnswers | undefined) {
    this.#told = told;
    this.#replicas = replicas;
  }

  /** The answer that another request has got, or undefined when this one goes on: to its own call, or to a shared failure. */
  join(key: string, maxAge: number, exchange: Exchange): Awaitable<SignedResponse | undefined> {
    const timeout = keys.timeout.of(exchange.endpoint) ?? DEFAULT_TIMEOUT;
    const joined = this.#inFlight.join(key, timeout, exchange.client);
    const take = (one: Joined<SignedResponse, Refusal> | undefined) => {
      if (one === undefined || !('settle' in one)) return this.#follow(one, exchange);
      // First of all: followers wait for ever for a leader that is not remembered here.
      this.#leader.set(exchange, one);
      if (this.#replicas === undefined) return this.#lead(one.waited, exchange);
      const patience = Math.min(timeout, timeout * LATEST_CALL - one.waited);
      return this.#search(this.#replicas, { key, maxAge, patience, waited: one.waited }, exchange);
    };
    return joined instanceof Promise ? joined.then(take) : take(joined);
  }

  /** The answer is there, for so many milliseconds. */
  store(answer: SignedResponse, maxAge: number, exchange: Exchange): void {
    this.#lock.get(exchange)?.store(answer, maxAge);
  }

  /** The upstream has answered: those who wait need not ask it. */
  answered(exchange: Exchange): void {
    this.#leader.get(exchange)?.answered();
  }

  /** The request has ended: its followers share the outcome. */
  settle(outcome: Outcome, exchange: Exchange): void {
    this.#leader.get(exchange)?.settle(settlementOf(outcome, exchange));
    // What is stored lets go of the lock by itself.
    if (outcome.kind !== 'signed' || exchange.abandoned) this.#lock.get(exchange)?.release();
  }

  #follow(
    joined: Exclude<Joined<SignedResponse, Refusal>, Leader<SignedResponse, Refusal>> | undefined,
    exchange: Exchange,
  ): SignedResponse | undefined {
    this.#told.miss(exchange, joined === undefined ? 'abandoned' : 'shared');
    if (joined === undefined) return undefined;
    if ('result' in joined) return joined.result;
    if ('failure' in joined) vainWait.set(exchange, { waited: 0, refusal: joined.failure });
    else vainWait.set(exchange, { waited: joined.waited });
    return undefined;
  }

  #lead(waited: number, exchange: Exchange): undefined {
    if (waited > 0) vainWait.set(exchange, { waited });
    this.#told.miss(exchange, 'miss');
  }

  async #search(
    replicas: ReplicaAnswers,
    { key, maxAge, patience, waited }: { key: string; maxAge: number; patience: number; waited: number },
    exchange: Exchange,
  ): Promise<SignedResponse | undefined> {
    const search = await replicas.search(key, maxAge, patience, exchange.client);
    if (search.lock !== undefined) this.#lock.set(exchange, search.lock);
    if (search.found === undefined) return this.#lead(waited + search.waited, exchange);
    this.#told.hit(exchange, search.found, key);
    return search.found.value;
  }
}
