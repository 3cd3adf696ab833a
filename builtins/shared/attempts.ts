/** The bucket of payments that one client may have looked at, and how a request ended that has drawn from it. */
import type { ClientBuckets, TokenTake } from '../../lib/bounded/token-buckets.ts';
import { clientKey } from '../../lib/http/client-address.ts';
import { type ConfigKey, millisecondsSchema, optionalKey } from '../../plugins-sdk/config.ts';
import {
  ContextKey,
  clientIp,
  type Exchange,
  isRefusal,
  Refusal,
  type Services,
  Type,
} from '../../plugins-sdk/index.ts';
import type { RequestOutcome } from '../../plugins-sdk/observe.ts';
import { StateKey } from '../../plugins-sdk/state.ts';
import { clientBuckets } from './client-buckets.ts';
import { refusalOf } from './payments.ts';

export const tooManyAttempts = () => new Refusal(401, 'Too many x402 verification attempts — slow down');

/** Milliseconds in which a client has its attempts, where the config does not say. */
const DEFAULT_WINDOW_MS = 60_000;

interface Attempt {
  readonly take: TokenTake;
  /** Whether nobody could tell if the payment is good. */
  isUntold?: boolean;
}

/** A limit, by client address, of payments that are looked at: one draw per request, however often it is asked for. */
export class Attempts {
  readonly keys: readonly ConfigKey[];
  readonly #limitIn: (config: Services['config']) => { readonly max: number; readonly window: number };
  readonly #name: string;
  readonly #kept: StateKey<ClientBuckets>;
  readonly #attempt: ContextKey<Attempt>;

  /**
   * @param name of its buckets. @param path where its config stands under `server`: `window` and `max` below it.
   * @param what is counted, in the plural. @param most that a client has per window where the config does not say.
   */
  constructor(name: string, path: string, what: string, most: number) {
    const window = optionalKey('server', `${path}.window`, millisecondsSchema('Length of the window; default 1m'));
    const description = `Payment ${what} per window; default ${most}`;
    const max = optionalKey('server', `${path}.max`, Type.Integer({ minimum: 1, maximum: 1_000_000_000, description }));
    this.keys = [window, max];
    this.#limitIn = (config) => ({ max: max.in(config) ?? most, window: window.in(config) ?? DEFAULT_WINDOW_MS });
    this.#name = name;
    this.#kept = new StateKey(`${name} buckets`);
    this.#attempt = new ContextKey(`${name} attempt`);
  }

  /** @returns what has the payment of a request looked at. It throws where too many were, and a refusal where the state is away. */
  in({ config, states, stateEngine, workers }: Services) {
    const limit = this.#limitIn(config);
    const buckets = states.keep(this.#kept, JSON.stringify(limit), () =>
      clientBuckets(limit, stateEngine, this.#name, workers),
    );
    return async <T>(exchange: Exchange, look: () => Promise<T>): Promise<T> => {
      const attempt = this.#attempt.get(exchange) ?? { take: await buckets.take(clientKey(clientIp(exchange))) };
      this.#attempt.set(exchange, attempt);
      if (!attempt.take.allowed) throw tooManyAttempts();
      try {
        return await look();
      } catch (error) {
        const refused = refusalOf(error);
        if (isRefusal(refused) && refused.fault) attempt.isUntold = true;
        throw refused;
      }
    };
  }

  /** How a request ended whose payment was not taken; nothing for one that came without. */
  refusedAs(exchange: Exchange, { kind }: RequestOutcome): 'limited' | 'unavailable' | 'refused' | undefined {
    const attempt = this.#attempt.get(exchange);
    if (attempt === undefined) return undefined;
    if (!attempt.take.allowed) return 'limited';
    return attempt.isUntold && kind !== 'abandoned' ? 'unavailable' : 'refused';
  }
}
