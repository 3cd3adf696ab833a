/** The bucket of payments that one client may have looked at, and how a request ended that has drawn from it. */
import type { ClientBuckets, TokenTake } from '../../lib/bounded/token-buckets.ts';
import { clientKey } from '../../lib/http/client-address.ts';
import { type ConfigKey, millisecondsSchema, optionalKey } from '../../plugins-sdk/config.ts';
import { ContextKey, clientIp, type Exchange, Refusal, type Services, Type } from '../../plugins-sdk/index.ts';
import { StateKey } from '../../plugins-sdk/state.ts';
import { clientBuckets } from './client-buckets.ts';

export interface AttemptsOptions {
  /** Where its config stands under `server`: `window` and `max` below it. */
  readonly path: string;
  /** What is counted, in the plural. */
  readonly what: string;
  /** How many a client has per window where the config does not say. */
  readonly max: number;
  /** Of its buckets. */
  readonly name: string;
}

export const tooManyAttempts = () => new Refusal(401, 'Too many x402 verification attempts — slow down');

/** Milliseconds in which a client has its attempts, where the config does not say. */
const DEFAULT_WINDOW_MS = 60_000;

/** A limit, by client address, of payments that are looked at: one draw per request, however often it is asked for. */
export class Attempts {
  readonly keys: readonly ConfigKey[];
  readonly #limitIn: (config: Services['config']) => { readonly max: number; readonly window: number };
  readonly #name: string;
  readonly #kept: StateKey<ClientBuckets>;
  readonly #drawn: ContextKey<TokenTake>;

  constructor({ path, what, max: most, name }: AttemptsOptions) {
    const window = optionalKey(
      'server',
      `${path}.window`,
      millisecondsSchema(`Milliseconds in which max ${what} are allowed; default ${DEFAULT_WINDOW_MS}`),
    );
    const description = `Payment ${what} per window; default ${most}`;
    const max = optionalKey('server', `${path}.max`, Type.Integer({ minimum: 1, maximum: 1_000_000_000, description }));
    this.keys = [window, max];
    this.#limitIn = (config) => ({ max: max.in(config) ?? most, window: window.in(config) ?? DEFAULT_WINDOW_MS });
    this.#name = name;
    this.#kept = new StateKey(`${name} buckets`);
    this.#drawn = new ContextKey(`${name} draw`);
  }

  /** @returns what draws for a request, and throws where too much was drawn. */
  in({ config, states, stateEngine, workers }: Services): (exchange: Exchange) => Promise<void> {
    const limit = this.#limitIn(config);
    const buckets = states.keep(this.#kept, JSON.stringify(limit), () =>
      clientBuckets(limit, stateEngine, this.#name, workers),
    );
    return async (exchange) => {
      const take = this.#drawn.get(exchange) ?? (await buckets.take(clientKey(clientIp(exchange))));
      this.#drawn.set(exchange, take);
      if (!take.allowed) throw tooManyAttempts();
    };
  }

  /**
   * How a request ended whose payment was not taken; nothing for one that came without.
   * @param isUntold whether nobody could tell if it is good, for another reason than that its client has left.
   */
  refusedAs(exchange: Exchange, isUntold: boolean): 'limited' | 'unavailable' | 'refused' | undefined {
    const take = this.#drawn.get(exchange);
    if (take === undefined) return undefined;
    if (!take.allowed) return 'limited';
    return isUntold ? 'unavailable' : 'refused';
  }
}
