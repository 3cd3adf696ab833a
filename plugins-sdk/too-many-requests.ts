import type { TokenTake } from '../lib/bounded/token-buckets.ts';
import { Refusal } from './kernel.ts';

/** What a client is told whose bucket holds no token (RFC 6585, section 4). @param reason which bucket, for the log. */
export function tooManyRequests({ retryAfter }: TokenTake, reason?: string): Refusal {
  const headers = { 'Retry-After': String(Math.ceil(retryAfter / 1000)) };
  return new Refusal(429, 'Too Many Requests', { headers, reason });
}
