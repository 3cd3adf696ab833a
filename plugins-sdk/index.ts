/** All that an operator's plugin may import; built-ins import the files behind it, too. */

export { BoundedTtlMap } from '../lib/bounded/bounded-ttl-map.ts';
export { dataDigest } from '../lib/eth/eip191.ts';
export { type Address, type Hex, isHex, toBytes, toHex } from '../lib/eth/hex.ts';
export { keccak256 } from '../lib/eth/keccak.ts';
export { randomId } from '../lib/eth/random-id.ts';
export { normalizedSignature } from '../lib/eth/signatures.ts';
export type { Statement } from '../lib/eth/statements.ts';
export { createHttpClient, type HttpClient, RequestFailure } from '../lib/http/client/index.ts';
export { clientKey, normalizeAddress } from '../lib/http/client-address.ts';
export { httpTarget } from '../lib/http/target.ts';
export { withoutRoundedNumbers } from '../lib/json/numbers.ts';
export { steadyClock } from '../lib/time/steady-clock.ts';
export { LONGEST_TIMER } from '../lib/time/timer.ts';
export { configKey, type Static, Type } from './config-key.ts';
export { addAnswerHeaders, clientAddress, clientIp, clientName, rawBody } from './context-keys.ts';
export {
  type Behaviour,
  type CheckContext,
  type Definition,
  definePlugin,
  type EndpointDraft,
  type Finding,
  type SimplePlugin,
  type Taps,
} from './define.ts';
export type {
  AfterApiCallContext,
  BeforeApiCallContext,
  BeforeSignContext,
  ErrorContext,
  HttpRequestContext,
  ResponseSentContext,
} from './hooks/contexts.ts';
export {
  type ApiResponse,
  type AuthMethod,
  type CallContext,
  ContextKey,
  type Encoded,
  type Endpoint,
  type Exchange,
  type HttpResponse,
  isRefusal,
  type Json,
  JsonText,
  type OutgoingRequest,
  type Parameters,
  type Question,
  Refusal,
  type Route,
  type RouteRequest,
  type Run,
  type Signed,
  SignedResponse,
  type SignRequest,
  type StageFn,
} from './kernel.ts';
export { millisecondsSchema } from './keys.ts';
export type { Log } from './log.ts';
export { objectSchema, refTo } from './openapi/components.ts';
export { perEndpoint, perMethod } from './prepare.ts';
export { AskedQuestion } from './question.ts';
export { requireAnswer, type Wanted } from './results/answers.ts';
export type { AskedResponse, Services } from './services.ts';
export {
  checkHttpSigners,
  configuredAddress,
  configuredTarget,
  type HttpSignerConfig,
  HttpSignerSchema,
} from './signing/settings.ts';
export { type OpenSigner, signerType } from './signing/signers.ts';
export { type StateArea, type StateEngine, StateUnavailable, stateEngine } from './state/area.ts';
export { MemoryArea, takeFrom } from './state/memory-area.ts';
export { StateKey } from './state/state.ts';
export { tooManyRequests } from './too-many-requests.ts';
