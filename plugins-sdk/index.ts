/** All that a plugin may import. */

export { requireAnswer, type Vouchers, type Wanted } from './answers.ts';
export { BoundedTtlMap } from './bounded-ttl-map.ts';
export * from './canonical-json.ts';
export * from './canonical-text.ts';
export * from './checks.ts';
export { clientKey, forwardedClient, normalizeAddress, parseAddress } from './client-address.ts';
export * from './connection-limits.ts';
export * from './context-keys.ts';
export type { DebtLine, Debts } from './debts.ts';
export * from './define.ts';
export * from './eip191.ts';
export * from './hex.ts';
export * from './http-client/index.ts';
export * from './http-target.ts';
export { LongResponse } from './json/long-response.ts';
export { JsonLimitError } from './json/scan.ts';
export { isDeeperThan } from './json/skip.ts';
export * from './json-rpc.ts';
export { keccak256 } from './keccak.ts';
export * from './kernel.ts';
export * from './keys.ts';
export { koaContext } from './koa-context.ts';
export * from './memory-area.ts';
export { clientBuckets } from './merged-buckets.ts';
export * from './meters.ts';
export { isFiniteJson, keepsDigits, plainDigits, withoutRoundedNumbers } from './numbers.ts';
export {
  eip191Part,
  internalError,
  noStore,
  objectSchema,
  refTo,
  textSchema,
  withMembers,
} from './openapi-components.ts';
export type * from './openapi-part.ts';
export { optionalPackage } from './optional-package.ts';
export * from './prepare.ts';
export * from './probes.ts';
export * from './public-hooks.ts';
export { AskedQuestion, type QuestionParts } from './question.ts';
export { randomId } from './random-id.ts';
export { requestHashOf } from './request-hash.ts';
export { type Release, Semaphore, SlotTimeout } from './semaphore.ts';
export * from './signatures.ts';
export type { Signer } from './signer.ts';
export * from './signer-settings.ts';
export type { SignerRole } from './signer-variables.ts';
export * from './signers.ts';
export { type Closable, StateKey, type States } from './state.ts';
export * from './state-area.ts';
export * from './statements.ts';
export { steadyClock } from './steady-clock.ts';
export { LONGEST_TIMER } from './timer.ts';
export * from './token-buckets.ts';
export { warmUp } from './warm-up.ts';
export type { Workers } from './workers.ts';
