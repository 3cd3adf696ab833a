/** The part of the kernel that plugins may see: types, refusals and context keys. */
export { ContextKey } from '../kernel/context-key.ts';
export type { Exchange } from '../kernel/exchange.ts';
export type { CallEvent, Observer, StageEvent } from '../kernel/observer.ts';
export { isPlain, plainObject } from '../kernel/plain-json.ts';
export { isRefusal, Refusal } from '../kernel/refusal.ts';
export type { Plugin, Route } from '../kernel/registry.ts';
export {
  type AroundCall,
  type ContextStage,
  type Contracts,
  type Flight,
  type Hidden,
  type HookStage,
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
  Question,
  RequestOutcome,
  RouteRequest,
  Run,
  Signed,
  SignedParts,
  SignRequest,
} from '../kernel/values.ts';
export { JsonText } from '../lib/json/json-text.ts';
export { SignedResponse } from './signed-response.ts';
