/** The part of the kernel that plugins may see: types, refusals and context keys. */
export type { Budget, Spending } from '../kernel/budget.ts';
export type { AbortListener, AbortSource } from '../kernel/client-signal.ts';
export { ContextKey, type ContextKeyOptions } from '../kernel/context-key.ts';
export type { Exchange } from '../kernel/exchange.ts';
export type { CallEvent, Observer, StageEvent } from '../kernel/observer.ts';
export { isPlain, plainObject } from '../kernel/plain-json.ts';
export { isRefusal, Refusal, type RefusalOptions } from '../kernel/refusal.ts';
export type { Plugin, Route } from '../kernel/registry.ts';
export {
  type ArgsOf,
  type AroundCall,
  type AroundStage,
  type ContextStage,
  type Contracts,
  type Flight,
  type Hidden,
  type HookStage,
  type ResultOf,
  type StageFn,
  type StageName,
  type VariantStage,
  WrongShape,
} from '../kernel/stages.ts';
export type {
  ApiResponse,
  AuthMethod,
  Awaitable,
  BodyStream,
  CallContext,
  CheckedJson,
  Encoded,
  Endpoint,
  Headers,
  HttpRequest,
  HttpResponse,
  Json,
  OutgoingRequest,
  Parameters,
  Proof,
  Question,
  RequestOutcome,
  RouteRequest,
  Run,
  Signed,
  SignedParts,
  SignRequest,
} from '../kernel/values.ts';
export { JsonText } from './lib/json/json-text.ts';
export { SignedResponse } from './signed-response.ts';
