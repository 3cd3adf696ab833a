import { Refusal } from '../kernel/refusal.ts';
import type { Taken } from '../lib/bounded/token-buckets.ts';

/** Makes the refusal for an empty token bucket: 429 (RFC 6585, section 4). @param reason names the bucket, for the log. */
export function tooManyRequests({ retryAfter }: Pick<Taken, 'retryAfter'>, reason?: string): Refusal {
  const headers = { 'Retry-After': String(Math.ceil(retryAfter / 1000)) };
  return new Refusal(429, 'Too Many Requests', { headers, reason });
}
