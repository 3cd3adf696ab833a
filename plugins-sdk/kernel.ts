/** The part of the kernel that plugins may see: types, refusals and slots. */
export { Answer, type Encoded, type Signed } from '../kernel/answer.ts';
export type { Departing } from '../kernel/departure.ts';
export type { AuthMethod, Endpoint } from '../kernel/endpoint.ts';
export { clientAddress, type Exchange, type Json, type Parameters, randomId } from '../kernel/exchange.ts';
export { JsonText } from '../kernel/json-text.ts';
export type { Call } from '../kernel/ledger.ts';
export type { CallEvent, Observer, StageEvent } from '../kernel/observer.ts';
export { plainObject } from '../kernel/plain-json.ts';
export { isRefusal, Refusal, type RefusalOptions } from '../kernel/refusal.ts';
export type { Plugin, Route } from '../kernel/registry.ts';
export { Slot } from '../kernel/slot.ts';
export {
  type Adapters,
  type ApiResponse,
  type Awaitable,
  type Outcome,
  type Proof,
  type PublicStage,
  type Reply,
  type Run,
  type Shapes,
  type SignRequest,
  type StageFn,
  type StageName,
  WrongShape,
} from '../kernel/stages.ts';
