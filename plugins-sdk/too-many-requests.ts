import type { TokenTake } from '../lib/bounded/token-buckets.ts';
import { Refusal } from './kernel.ts';

/** The refusal of an empty bucket (RFC 6585, section 4). @param reason which bucket, for the log. */
export function tooManyRequests({ retryAfter }: TokenTake, reason?: string): Refusal {
  const headers = { 'Retry-After': String(Math.ceil(retryAfter / 1000)) };
  return new Refusal(429, 'Too Many Requests', { headers, reason });
}
