import { Refusal } from '../../kernel/refusal.ts';
import { type StageName, stageOf } from '../../kernel/stages.ts';
import type { Values } from '../../kernel/values.ts';
import type { Hex } from '../../lib/eth/hex.ts';
import { deepFreeze } from '../../lib/objects/deep-freeze.ts';
import type { Awaitable, OutgoingRequest, Question } from '../kernel.ts';
import { AskedQuestion } from '../question.ts';
import { madeHere } from '../results/answers.ts';
import { SignedResponse } from '../signed-response.ts';
import type { DefaultInputs, QuestionInput, ShortInputs } from './inputs.ts';
import { frozenCopy, type TestExchange } from './test-exchange.ts';

/** Default members of a signed answer. */
const sample = {
  node: `0x${'11'.repeat(20)}`,
  timestamp: 1_700_000_000,
  data: `0x${'00'.repeat(32)}`,
  signature: `0x${'22'.repeat(65)}`,
} as const satisfies Readonly<Record<string, Hex | number>>;

type Given = { readonly [V in keyof Values]?: unknown };

/** What a test says of any stage. */
export interface AnyInput extends Omit<Given, keyof DefaultInputs>, Omit<DefaultInputs, 'data'> {
  readonly data?: unknown;
  readonly variant?: string;
  readonly duration?: number | undefined;
  next?(value: never): Awaitable<unknown>;
}

function outgoingFor(given: Partial<OutgoingRequest> = {}): OutgoingRequest {
  return Object.freeze({ method: 'GET', url: 'https://api.example.com/', headers: {}, body: undefined, ...given });
}

/** A question; pass what matters to the test. Its parameters are those that it is asked with again, and change nothing of its request. */
export function testQuestion(given: QuestionInput = {}): Question {
  const { parameters = {}, reserved = {}, key = 'k'.repeat(43), requestHash } = given;
  const request = outgoingFor(given.request);
  return new AskedQuestion({ parameters, reserved, request, requestHash, key: () => key, requestFor: () => request });
}

/** Default inside of an onion. */
export const inside = {
  /** An answer as the service would have signed it. */
  answer: (question: Question, endpointId: Hex) =>
    madeHere(
      { ...sample, endpointId, field: 'data', value: sample.data, beside: undefined, proof: undefined },
      question,
    ),
  callApi: (request: OutgoingRequest) => ({ data: null, status: 200, text: 'null', request }),
};

/** Values of a stage's table, made of what a test says in other words. */
const made: { readonly [N in keyof ShortInputs]: (input: ShortInputs[N], endpointId: string) => Given } = {
  route: ({ params = {}, query, body = '' }) => ({
    request: { params, query: new URLSearchParams(query), body: Buffer.from(body) },
  }),
  onAfterApiCall: ({ data = null, status = 200 }) => {
    const text = JSON.stringify(data);
    return { response: { data: deepFreeze(JSON.parse(text)), status, text } };
  },
  onResponseSent: ({ status = 200, answer }, endpointId) => ({
    status,
    signedResponse: SignedResponse.parse(JSON.stringify({ ...sample, endpointId, ...answer })),
  }),
  onError: ({ status = 502, message = 'API call failed', stage = 'callApi' }, id) => ({
    refusal: new Refusal(status, message, { stage }),
    id,
  }),
};

/**
 * What functions of a stage take.
 * @throws TypeError for what a test has to say and does not.
 */
export function valuesOf(name: StageName, input: AnyInput, exchange: TestExchange, endpointId: string): unknown[] {
  const { data = sample.data, parameters = exchange.parameters, question = testQuestion(), outgoing } = input;
  const { context, takes } = stageOf(name);
  const given: Given = {
    ...input,
    data,
    parameters: context ? frozenCopy(parameters) : parameters,
    question,
    outgoing: outgoingFor(outgoing),
    ...(Object.hasOwn(made, name) && made[name as keyof typeof made](input as never, endpointId)),
  };
  return takes.map((value) => {
    if (given[value] === undefined)
      throw new TypeError(`the stage "${name}" takes "${value}", which the test does not give`);
    return given[value];
  });
}
