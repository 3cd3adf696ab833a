import type { Exchange } from '../../kernel/exchange.ts';
import {
  type AroundStage,
  type AroundValue,
  type Contract,
  type Contracts,
  stages,
  WrongShape,
} from '../../kernel/stages.ts';
import type {
  Encoded,
  Endpoint,
  Headers,
  Json,
  OutgoingRequest,
  Parameters,
  Question,
  Signed,
  SignRequest,
  Values,
} from '../../kernel/values.ts';
import { isHex } from '../../lib/eth/hex.ts';
import { JsonText } from '../../lib/json/json-text.ts';
import { isFiniteJson } from '../../lib/json/numbers.ts';
import { deepFreeze, isRecord, isString } from '../../lib/json/value.ts';
import { hookContract } from '../hooks/public-hooks.ts';
import { AskedQuestion, SignedResponse } from '../question-and-answer.ts';
import { isChecked, requireSigned } from '../signing/signed.ts';
import type { ContextStage, InnerResult } from '../stage-functions.ts';
import { ADDED, requireAnswer, type Vouchers } from './answers.ts';
import { headersOf, httpResponseOf } from './http-response.ts';
import { ensure, hexIn, jsonObject, membersOf, RESERVED, wrong } from './members.ts';
import { statementsIn } from './statements.ts';
import { outgoingOf, readResponse } from './upstream.ts';

function yes(value: unknown): true {
  ensure(value === true, 'it must be true or undefined');
  return value;
}

function amountOf(value: unknown): bigint {
  ensure(typeof value === 'bigint' && value >= 0n, 'it must be a bigint, 0n or more');
  return value;
}

/** Freezes parameters at every depth. Parts that are frozen already are skipped. */
function parametersOf(value: unknown): Parameters {
  ensure(isRecord(value), 'it must be an object of parameters');
  return deepFreeze(value) as Parameters;
}

function signedResponseOf(value: unknown): SignedResponse {
  if (SignedResponse.is(value)) return value;
  const { json } = membersOf(value, ['json']);
  ensure(isString(json), 'json must be a text');
  try {
    return SignedResponse.parse(json);
  } catch (error) {
    throw wrong(error instanceof TypeError ? error.message : 'an answer is JSON');
  }
}

/** Names that an answer's value cannot have, because other members have them. */
const TAKEN: ReadonlySet<string> = new Set([...RESERVED, ...ADDED, 'receipt', 'signatures']);

const ENCODED = ['bytes', 'field', 'value'];

/** Reads the result of `encode`. Each member is read once, so that the checked value is the one that is signed and shown. */
function encodedOf(value: unknown): Encoded {
  const { bytes, field, value: shown } = membersOf(value, ENCODED);
  ensure(isHex(bytes), 'bytes must be 0x hex');
  ensure(isString(field) && field !== '', 'field must be a text that is not empty');
  ensure(!TAKEN.has(field), `the field ${field} has another meaning`);
  if (shown === bytes || JsonText.is(shown)) return { bytes, field, value: shown };
  return { bytes, field, value: jsonOf(shown) };
}

function jsonOf(value: unknown): JsonText {
  try {
    ensure(isFiniteJson(value as Json), 'the value holds a number that JSON cannot carry');
    return JsonText.stringify(value);
  } catch (error) {
    throw error instanceof WrongShape ? error : wrong('value must be JSON');
  }
}

/** Names that no member of `extra` can have: their members show the signed value or statements. */
const SHOWN: ReadonlySet<string> = new Set([...RESERVED, ...ADDED, 'data', 'rawData', 'receipt']);

const SIGNED = ['node', 'signature', 'statements', 'extra'];

/** Reads the result of `sign`, and checks its signatures unless they are marked as checked. @throws Refusal 502 */
function signedOf(value: unknown, [given]: readonly unknown[]): Signed {
  if (isChecked(value)) return value;
  const members = membersOf(value, SIGNED);
  const [node, signature] = [hexIn(members.node, 'node'), hexIn(members.signature, 'signature')];
  const { statements: asked = [] } = (given ?? {}) as Partial<SignRequest>;
  const { statements: signed = [], extra: further = {} } = members;
  const isWhole = Array.isArray(signed) && signed.length === asked.length && signed.every(isHex);
  ensure(isWhole, `statements must hold ${asked.length} signatures, of what is to be signed beside the answer`);
  const extra = jsonObject(further, 'extra');
  for (const name of Object.keys(extra))
    ensure(!SHOWN.has(name) && asked.every((one) => one.name !== name), `the field ${name} has another meaning`);
  const { signatures = [] } = extra;
  ensure(Array.isArray(signatures) && signatures.every(isRecord), 'signatures is no list of objects');
  const result = { node, signature, statements: [...signed], extra } as Signed;
  requireSigned(result, given as SignRequest);
  return result;
}

/** Most characters of one plugin's variation. */
const MAX_VARIATION = 4096;

/** Joins each plugin's text to those before it, so that no plugin can replace the text of another. */
function variationOf(value: unknown, [before]: readonly unknown[], plugin: string): string {
  ensure(isString(value), 'a variation must be a text');
  ensure(value.length <= MAX_VARIATION, `a variation must have at most ${MAX_VARIATION} characters`);
  return `${String(before)}\n${JSON.stringify([plugin, value])}`;
}

function questionOf(value: unknown): AskedQuestion {
  ensure(AskedQuestion.is(value), 'a question must be a new AskedQuestion of the SDK');
  return value;
}

/** Returns the same question, perhaps with another upstream request. */
function sameQuestion(value: unknown, [given]: readonly unknown[]): AskedQuestion {
  if (value === given) return value as AskedQuestion;
  if (!AskedQuestion.is(value) || !AskedQuestion.isSame(value, given as AskedQuestion))
    throw new WrongShape('next takes the question that the function got, or one that its "with" made');
  return value;
}

/** The facts of the service that plugins' results are checked against. */
export interface ServiceFacts extends Vouchers {
  /** The endpoints that `resolve` chooses from. */
  readonly endpoints: Pick<ReadonlySet<unknown>, 'has'>;
}

/** Readers, by around stage, of the value that a function passes to the next one. @param args those that the function got. */
export const inputs: { readonly [N in AroundStage]: (value: unknown, args: readonly unknown[]) => AroundValue<N> } = {
  answer: sameQuestion,
  callApi: (value, [given]) => {
    const request = given as OutgoingRequest;
    return value === request ? request : outgoingOf(value, 'the request', request.pathValues);
  },
};

/**
 * Returns the readers of the values that inner stages return: as checked copies, or as they are where they cannot change. They
 * throw {@link WrongShape}, and any error that reading a hostile value throws.
 */
export function readersFor(facts: ServiceFacts): {
  readonly [R in InnerResult]: (value: unknown, args: readonly unknown[], plugin: string) => Values[R];
} {
  return {
    allowed: yes,
    amount: amountOf,
    approved: (value) => void yes(value),
    endpoint: (value) => {
      // Built-ins have prepared values for these objects alone.
      ensure(facts.endpoints.has(value), 'it must be one of services.endpoints, and no copy of one');
      return value as Endpoint;
    },
    parameters: parametersOf,
    variation: variationOf,
    question: questionOf,
    httpResponse: httpResponseOf,
    signedResponse: (value, [question, exchange]) => {
      const answer = signedResponseOf(value);
      const endpointId = (exchange as Exchange).endpoint.id;
      requireAnswer(answer, { endpointId, question: question as Question }, facts);
      return answer;
    },
    response: (value, [given]) => readResponse(value, given),
    encoded: encodedOf,
    data: (value) => hexIn(value, 'it'),
    statements: statementsIn,
    signed: signedOf,
    proof: (value) => jsonObject(value, 'it'),
    // A plugin can replace the headers of earlier ones, but not remove them.
    headers: (value, [before]) => headersOf(value, before as Headers),
  };
}

/** Returns the contracts of all stages. */
export function contractsFor(facts: ServiceFacts): Contracts {
  const readers: Readonly<Record<string, Contract['accept']>> = readersFor(facts);
  return {
    protect: (response) => void deepFreeze(response.data),
    of: (stage) => {
      const { public: isPublic, returns = '' } = stages[stage];
      if (isPublic) return hookContract(stage as ContextStage);
      const accept = readers[returns];
      const input = (inputs as Readonly<Record<string, Contract['input']>>)[stage];
      return { ...(accept && { accept }), ...(input && { input }) };
    },
  };
}
