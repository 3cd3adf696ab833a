/** The SDK's entry for plugins whose state outlives reloads or is shared by requests or processes, and for state engines. */

export { BoundedTtlMap } from '../lib/bounded/bounded-ttl-map.ts';
export { type BucketLimit, type Taken, takeFrom } from '../lib/bounded/token-buckets.ts';
export { randomId } from '../lib/eth/hex.ts';
export { steadyClock } from '../lib/time.ts';
export { requireAnswer, type Wanted } from './results/answers.ts';
export type { Workers } from './services.ts';
export type { Flight } from './stage-functions.ts';
export {
  type CompareAndSetOptions,
  type Conflict,
  type EngineServices,
  type SharedState,
  type StateArea,
  type StateEngine,
  StatePartUnavailable,
  StateUnavailable,
  StateUnreadable,
  stateEngine,
  update,
} from './state/area.ts';
export { type DebtLine, Debts } from './state/debts.ts';
export { MemoryArea } from './state/memory-area.ts';
export { type Closable, StateKey, type States } from './state/store.ts';
