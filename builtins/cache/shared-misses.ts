import {
  type Answer,
  type Awaitable,
  DEFAULT_TIMEOUT,
  type Exchange,
  keys,
  type Outcome,
  type Refusal,
  Slot,
  vainWait,
} from '../../plugins-sdk/index.ts';
import { Flights, type Landing, type Turn } from './flights.ts';

type Land = (landing: Landing<Answer, Refusal>) => void;

/** Whoever leaves takes along what its request came to. */
function landingOf(outcome: Outcome, { abandoned }: Exchange): Landing<Answer, Refusal> {
  if (abandoned || outcome.kind === 'abandoned') return undefined;
  return outcome.kind === 'signed' ? { result: outcome.answer } : { failure: outcome.refusal };
}

/** Many clients that want what nobody has yet cost one upstream call. */
export class SharedMisses {
  readonly #flights = new Flights<Answer, Refusal>();
  readonly #landing = new Slot<Land>('cache flight');
  readonly #told: (exchange: Exchange, shared: boolean) => void;

  /** @param told whether a request has shared what another's has come to, be it a failure. */
  constructor(told: (exchange: Exchange, shared: boolean) => void) {
    this.#told = told;
  }

  /** The answer that another request has got, or undefined when this one goes on: to its own call, or to a shared failure. */
  join(key: string, exchange: Exchange): Awaitable<Answer | undefined> {
    const patience = keys.timeout.of(exchange.endpoint) ?? DEFAULT_TIMEOUT;
    const turn = this.#flights.join(key, patience, exchange.departure);
    return turn instanceof Promise ? turn.then((late) => this.#take(late, exchange)) : this.#take(turn, exchange);
  }

  /** Tells those who wait what has become of the request that they wait for. */
  settle(outcome: Outcome, exchange: Exchange): void {
    this.#landing.get(exchange)?.(landingOf(outcome, exchange));
  }

  #take(turn: Turn<Answer, Refusal> | undefined, exchange: Exchange): Answer | undefined {
    this.#told(exchange, turn !== undefined && !('land' in turn));
    if (turn === undefined) return undefined;
    if ('result' in turn) return turn.result;
    if ('failure' in turn) {
      vainWait.set(exchange, { waited: 0, refusal: turn.failure });
    } else {
      this.#landing.set(exchange, turn.land);
      if (turn.waited > 0) vainWait.set(exchange, { waited: turn.waited });
    }
    return undefined;
  }
}
