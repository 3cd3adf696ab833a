/** Passes on the part of the kernel that plugins may see: types, refusals and context keys. */

export { Charge } from '../kernel/charge.ts';
export type { Exchange } from '../kernel/exchange.ts';
export type { CallEvent, Observer, StageEvent } from '../kernel/hooks.ts';
export { isRefusal, plainObject, Refusal } from '../kernel/refusal.ts';
export type { Plugin, Route } from '../kernel/registry.ts';
export { type Hidden, type StageName, type VariantStage, WrongShape } from '../kernel/stages.ts';
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
  StatementBeside,
} from '../kernel/values.ts';
export { JsonText } from '../lib/json/json-text.ts';
export { ContextKey } from './context-key.ts';
export { SignedResponse } from './signed-response.ts';
export type { AroundCall, ContextStage, Flight, HookStage, StageContracts, StageFn } from './stage-functions.ts';
