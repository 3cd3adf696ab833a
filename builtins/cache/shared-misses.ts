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
import { type Joined, type Leader, type Settlement, SingleFlight } from './single-flight.ts';

/** What the end of a leader's request means for its followers. An answer whose client has left is not shared. */
function settlementOf(outcome: Outcome, { abandoned }: Exchange): Settlement<SignedResponse, Refusal> {
  if (abandoned || outcome.kind === 'abandoned') return undefined;
  return outcome.kind === 'signed' ? { result: outcome.response } : { failure: outcome.refusal };
}

/** What a request does that misses the cache: asks the upstream, shares another's answer or failure, or is abandoned meanwhile. */
export type Miss = 'miss' | 'shared' | 'abandoned';

/** Requests that miss the cache for the same answer at the same time share one upstream call. */
export class SharedMisses {
  readonly #inFlight = new SingleFlight<SignedResponse, Refusal>();
  readonly #leader = new ContextKey<Leader<SignedResponse, Refusal>>('cache leader');
  readonly #told: (exchange: Exchange, miss: Miss) => void;

  constructor(told: (exchange: Exchange, miss: Miss) => void) {
    this.#told = told;
  }

  /** The answer that another request has got, or undefined when this one goes on: to its own call, or to a shared failure. */
  join(key: string, exchange: Exchange): Awaitable<SignedResponse | undefined> {
    const timeout = keys.timeout.of(exchange.endpoint) ?? DEFAULT_TIMEOUT;
    const joined = this.#inFlight.join(key, timeout, exchange.client);
    return joined instanceof Promise ? joined.then((late) => this.#take(late, exchange)) : this.#take(joined, exchange);
  }

  /** The upstream has answered: those who wait need not ask it. */
  answered(exchange: Exchange): void {
    this.#leader.get(exchange)?.answered();
  }

  /** The request has ended: its followers share the outcome. */
  settle(outcome: Outcome, exchange: Exchange): void {
    this.#leader.get(exchange)?.settle(settlementOf(outcome, exchange));
  }

  #take(joined: Joined<SignedResponse, Refusal> | undefined, exchange: Exchange): SignedResponse | undefined {
    if (joined === undefined) {
      this.#told(exchange, 'abandoned');
      return undefined;
    }
    if ('settle' in joined) {
      // First of all: followers wait for ever for a leader that is not remembered here.
      this.#leader.set(exchange, joined);
      if (joined.waited > 0) vainWait.set(exchange, { waited: joined.waited });
      this.#told(exchange, 'miss');
      return undefined;
    }
    this.#told(exchange, 'shared');
    if ('result' in joined) return joined.result;
    if ('failure' in joined) vainWait.set(exchange, { waited: 0, refusal: joined.failure });
    else vainWait.set(exchange, { waited: joined.waited });
    return undefined;
  }
}
