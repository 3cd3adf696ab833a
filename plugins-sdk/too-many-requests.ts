import { Refusal } from './kernel.ts';
import type { TokenTake } from './lib/bounded/token-buckets.ts';

/** What a client is told whose bucket holds no token (RFC 6585, section 4). Observers of errors do not see it. */
export function tooManyRequests({ retryAfter }: TokenTake): Refusal {
  const headers = { 'Retry-After': String(Math.ceil(retryAfter / 1000)) };
  return new Refusal(429, 'Too Many Requests', { headers, failure: false });
}
