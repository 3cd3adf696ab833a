/** Limits how many payments one client may have checked, and says how a request with a payment ended. */
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

/** Makes the refusal of a request whose client has had too many payments checked. */
export const tooManyAttempts = () => new Refusal(401, 'Too many x402 verification attempts — slow down');

/** Default length of the window, in milliseconds. */
const DEFAULT_WINDOW_MS = 60_000;

interface Attempt {
  readonly take: TokenTake;
  /** Whether the check of the payment failed without a verdict. */
  isUntold?: boolean;
}

/**
 * Limits the checks of payments by client address. A request takes one token, however often its payment is checked.
 * @param name the prefix of its buckets' names. @param path the config path under `server`, with `window` and `max` below it.
 * @param what the things that are counted, in the plural. @param most the default limit per client and window.
 */
export function attemptsOf(name: string, path: string, what: string, most: number) {
  const window = optionalKey('server', `${path}.window`, millisecondsSchema('Length of the window; default 1m'));
  const description = `Payment ${what} per window; default ${most}`;
  const max = optionalKey('server', `${path}.max`, Type.Integer({ minimum: 1, maximum: 1_000_000_000, description }));
  const kept = new StateKey<ClientBuckets>(`${name} buckets`);
  const attempts = new ContextKey<Attempt>(`${name} attempt`);
  return {
    keys: [window, max],
    /**
     * Returns a function that takes a token for a request, then runs the check of its payment.
     * It throws a refusal when the bucket is empty, when the check fails, and when the state engine is unreachable.
     */
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
    /** Returns why a request's payment was not taken; undefined for a request without one. */
    refusedAs(exchange: Exchange, { kind }: RequestOutcome): 'limited' | 'unavailable' | 'refused' | undefined {
      const attempt = attempts.get(exchange);
      if (attempt?.take.allowed === false) return 'limited';
      return attempt && (attempt.isUntold && kind !== 'abandoned' ? 'unavailable' : 'refused');
    },
  };
}
