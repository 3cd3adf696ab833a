/** The bucket of payments that one client may have looked at, and how a request ended that has drawn from it. */
import type { ClientBuckets, TokenTake } from '../../lib/bounded/token-buckets.ts';
import { clientKey } from '../../lib/http/client-address.ts';
import { millisecondsSchema, optionalKey } from '../../plugins-sdk/config.ts';
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

/**
 * A limit, by client address, of payments that are looked at: one draw per request, however often it is asked for.
 * @param name of its buckets. @param path where its config stands under `server`: `window` and `max` below it.
 * @param what is counted, in the plural. @param most that a client has per window where the config does not say.
 */
export function attemptsOf(name: string, path: string, what: string, most: number) {
  const window = optionalKey('server', `${path}.window`, millisecondsSchema('Length of the window; default 1m'));
  const description = `Payment ${what} per window; default ${most}`;
  const max = optionalKey('server', `${path}.max`, Type.Integer({ minimum: 1, maximum: 1_000_000_000, description }));
  const kept = new StateKey<ClientBuckets>(`${name} buckets`);
  const attempts = new ContextKey<Attempt>(`${name} attempt`);
  return {
    keys: [window, max],
    /** @returns what has the payment of a request looked at. It throws where too many were, and a refusal where the state is away. */
    in({ config, states, stateEngine, workers }: Services) {
      const limit = { max: max.in(config) ?? most, window: window.in(config) ?? DEFAULT_WINDOW_MS };
      const buckets = states.keep(kept, JSON.stringify(limit), () => clientBuckets(limit, stateEngine, name, workers));
      return async (exchange: Exchange, look: () => Promise<void>): Promise<void> => {
        const attempt = attempts.get(exchange) ?? { take: await buckets.take(clientKey(clientIp(exchange))) };
        attempts.set(exchange, attempt);
        if (!attempt.take.allowed) throw tooManyAttempts();
        try {
          await look();
        } catch (error) {
          const refused = refusalOf(error);
          if (isRefusal(refused) && refused.fault) attempt.isUntold = true;
          throw refused;
        }
      };
    },
    /** How a request ended whose payment was not taken; nothing for one that came without. */
    refusedAs(exchange: Exchange, { kind }: RequestOutcome): 'limited' | 'unavailable' | 'refused' | undefined {
      const attempt = attempts.get(exchange);
      if (attempt?.take.allowed === false) return 'limited';
      return attempt && (attempt.isUntold && kind !== 'abandoned' ? 'unavailable' : 'refused');
    },
  };
}
