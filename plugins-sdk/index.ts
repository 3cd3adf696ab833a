/** All that a plugin may import. */

export * from './checks.ts';
export * from './connection-limits.ts';
export * from './context-keys.ts';
export * from './define.ts';
export * from './kernel.ts';
export * from './keys.ts';
export { koaContext } from './koa-context.ts';
export { BoundedTtlMap } from './lib/bounded/bounded-ttl-map.ts';
export { type Release, Semaphore, SlotTimeout } from './lib/bounded/semaphore.ts';
export * from './lib/bounded/token-buckets.ts';
export * from './lib/eth/eip191.ts';
export * from './lib/eth/hex.ts';
export { keccak256 } from './lib/eth/keccak.ts';
export { randomId } from './lib/eth/random-id.ts';
export * from './lib/eth/signatures.ts';
export * from './lib/eth/statements.ts';
export * from './lib/http/client/index.ts';
export { clientKey, forwardedClient, normalizeAddress, parseAddress } from './lib/http/client-address.ts';
export * from './lib/http/json-rpc.ts';
export * from './lib/http/target.ts';
export * from './lib/json/canonical-json.ts';
export * from './lib/json/canonical-text.ts';
export { isFiniteJson, keepsDigits, plainDigits, withoutRoundedNumbers } from './lib/json/numbers.ts';
export { JsonLimitError } from './lib/json/scan.ts';
export { isDeeperThan } from './lib/json/skip.ts';
export { optionalPackage } from './lib/process/optional-package.ts';
export { warmUp } from './lib/process/warm-up.ts';
export { steadyClock } from './lib/time/steady-clock.ts';
export { LONGEST_TIMER } from './lib/time/timer.ts';
export { clientBuckets } from './merged-buckets.ts';
export * from './meters.ts';
export {
  eip191Part,
  internalError,
  noStore,
  objectSchema,
  refTo,
  textSchema,
  withMembers,
} from './openapi/components.ts';
export type * from './openapi/part.ts';
export * from './prepare.ts';
export * from './probes.ts';
export * from './public-hooks.ts';
export { AskedQuestion, type QuestionParts } from './question.ts';
export { requestHashOf } from './request-hash.ts';
export { requireAnswer, type Vouchers, type Wanted } from './results/answers.ts';
export { LongResponse } from './results/long-response.ts';
export type { Signer } from './signing/local-key.ts';
export * from './signing/settings.ts';
export * from './signing/signers.ts';
export type { SignerRole } from './signing/variables.ts';
export * from './state/area.ts';
export type { DebtLine, Debts } from './state/debts.ts';
export * from './state/memory-area.ts';
export { type Closable, StateKey, type States } from './state/state.ts';
export { tooManyRequests } from './too-many-requests.ts';
export type { Workers } from './workers.ts';
