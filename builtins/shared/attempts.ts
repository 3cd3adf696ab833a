/** Limits how many payments one client may have checked, and says how a request with a payment ended. */
import type { TokenTake } from '../../lib/bounded/token-buckets.ts';
import { clientKey } from '../../lib/http/client-address.ts';
import { ContextKey, clientIp, type Exchange, isRefusal, Refusal, type Services } from '../../plugins-sdk/index.ts';
import type { RequestOutcome } from '../../plugins-sdk/observe.ts';
import { addressLimit } from './client-buckets.ts';
import { refusalOf } from './payments.ts';

/** Makes the refusal of a request whose client has had too many payments checked. */
export const tooManyAttempts = () => new Refusal(401, 'Too many x402 verification attempts — slow down');

interface Attempt {
  readonly take: TokenTake;
  /** Whether the check of the payment failed without a verdict. */
  isUntold?: boolean;
}

/**
 * Limits the checks of payments by client address. A request takes one token, however often its payment is checked.
 * @param name the limit's name; the other parameters are as in {@link addressLimit}.
 */
export function attemptsOf(name: string, path: string, what: string, most: number) {
  const limited = addressLimit(name, path, what, most);
  const attempts = new ContextKey<Attempt>(`${name} attempt`);
  return {
    keys: limited.keys,
    /**
     * Returns a function that takes a token for a request, then runs the check of its payment.
     * It throws a refusal when the bucket is empty, when the check fails, and when the state engine is unreachable.
     */
    in(services: Services) {
      const { buckets } = limited.in(services);
      return async (exchange: Exchange, look: () => Promise<void>): Promise<void> => {
        const attempt = attempts.get(exchange) ?? { take: await buckets.take(clientKey(clientIp(exchange))) };
        attempts.set(exchange, attempt);
        if (attempt.take.granted === 0) throw tooManyAttempts();
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
      if (attempt?.take.granted === 0) return 'limited';
      return attempt && (attempt.isUntold && kind !== 'abandoned' ? 'unavailable' : 'refused');
    },
  };
}
