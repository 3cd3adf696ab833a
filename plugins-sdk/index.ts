/** All that a plugin may import. */
export * from './bounded-request.ts';
export { BoundedTtlMap } from './bounded-ttl-map.ts';
export * from './canonical-json.ts';
export * from './checks.ts';
export { clientKey, forwardedClient, normalizeAddress, parseAddress } from './client-address.ts';
export * from './define.ts';
export * from './eip191.ts';
export * from './hex.ts';
export { keccak256 } from './keccak.ts';
export * from './kernel.ts';
export * from './keys.ts';
export * from './prepare.ts';
export * from './public-hooks.ts';
export * from './semaphore.ts';
export type { Signer } from './signer.ts';
export * from './slots.ts';
export { steadyClock } from './steady-clock.ts';
export * from './token-buckets.ts';
