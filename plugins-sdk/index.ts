/** The SDK's main entry. Beside it are `config`, `openapi`, `state`, `signing` and `observe`, for plugins on these subjects. */

export type { Exchange } from '../kernel/exchange.ts';
export { isRefusal, Refusal } from '../kernel/refusal.ts';
export type { Route } from '../kernel/registry.ts';
export type {
  ApiResponse,
  AuthMethod,
  CallContext,
  Encoded,
  Endpoint,
  HttpResponse,
  Json,
  OutgoingRequest,
  Parameters,
  Question,
  RouteRequest,
  Run,
} from '../kernel/values.ts';
export { type Hex, isHex, toBytes, toHex } from '../lib/eth/hex.ts';
export { createHttpClient, type HttpClient, RequestFailure } from '../lib/http/client/index.ts';
export { clientKey, normalizeAddress } from '../lib/http/client-address.ts';
export { JsonText } from '../lib/json/json-text.ts';
export { withoutRoundedNumbers } from '../lib/json/numbers.ts';
export { configKey, type Static, Type } from './config-key.ts';
export {
  addAnswerHeaders,
  answerHeaders,
  ContextKey,
  clientAddress,
  clientIp,
  clientName,
  rawBody,
  writtenParameters,
} from './context-key.ts';
export { type Behaviour, type Definition, definePlugin, type SimplePlugin, type Taps } from './define.ts';
export type {
  AfterApiCallContext,
  BeforeApiCallContext,
  BeforeSignContext,
  ErrorContext,
  HttpRequestContext,
  ResponseSentContext,
} from './hooks/contexts.ts';
export { takeParameters } from './hooks/results.ts';
export type { Log } from './log.ts';
export { perEndpoint, perMethod } from './prepare.ts';
export { AskedQuestion, SignedResponse } from './question-and-answer.ts';
export { keep } from './results/upstream.ts';
export type { AskedResponse, Services } from './services.ts';
export type { StageFn } from './stage-functions.ts';
export { tooManyRequests } from './too-many-requests.ts';
