/**
 * Requests signed answers of the service and verifies them off chain. Runs in browsers, Workers and Node.js, and needs no other
 * part of the service.
 */
export { type AskedAnswer, type AskOptions, ask, type ValueOf } from './ask.ts';
export { AskError, type AskReason } from './ask-error.ts';
export {
  type AskManyOptions,
  askMany,
  type Failure,
  type ManyAnswers,
  type Operator,
  QuorumError,
} from './ask-many.ts';
export { type AnswerOnChain, calldataFor } from './calldata.ts';
export type { Hex } from './ethereum.ts';
export type { VerifyOptions } from './options.ts';
export { requestHashOf } from './receipt.ts';
export type { Reason } from './refusal.ts';
export {
  CLOCK_SKEW,
  type Refused,
  type Verification,
  type VerifiedEncoded,
  type VerifiedRaw,
  verifyResponse,
} from './response.ts';
