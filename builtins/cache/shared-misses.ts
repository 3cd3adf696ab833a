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

/** A client that leaves takes along what its request came to. */
function settlementOf(outcome: Outcome, { abandoned }: Exchange): Settlement<SignedResponse, Refusal> {
  if (abandoned || outcome.kind === 'abandoned') return undefined;
  return outcome.kind === 'signed' ? { result: outcome.response } : { failure: outcome.refusal };
}

/**
 * What became of a request whose answer was not there: it asks the upstream, shares what another one has come to, be it a
 * failure, or was abandoned by its client while it waited for that.
 */
export type Miss = 'miss' | 'shared' | 'abandoned';

/** Many clients that want what nobody has yet cost one upstream call. */
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

  /** Tells those who wait what has become of the request that they wait for. */
  settle(outcome: Outcome, exchange: Exchange): void {
    this.#leader.get(exchange)?.settle(settlementOf(outcome, exchange));
  }

  #take(joined: Joined<SignedResponse, Refusal> | undefined, exchange: Exchange): SignedResponse | undefined {
    if (joined === undefined) {
      this.#told(exchange, 'abandoned');
      return undefined;
    }
    if ('settle' in joined) {
      // Before anything else: a leader without it would never end the wait of the others.
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
