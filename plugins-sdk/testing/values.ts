import { plainObject, Refusal } from '../../kernel/refusal.ts';
import { type StageName, stages } from '../../kernel/stages.ts';
import type { Awaitable, Endpoint, OutgoingRequest, Question, Values } from '../../kernel/values.ts';
import type { Hex } from '../../lib/eth/hex.ts';
import { deepFreeze } from '../../lib/json/value.ts';
import { AskedQuestion, SignedResponse } from '../question-and-answer.ts';
import { madeHere } from '../results/answers.ts';
import type { DefaultInputs, ShortInputs } from './inputs.ts';
import type { TestExchange } from './test-exchange.ts';

/** Default members of a signed answer. */
const sample = {
  node: `0x${'11'.repeat(20)}`,
  timestamp: 1_700_000_000,
  data: `0x${'00'.repeat(32)}`,
  signature: `0x${'22'.repeat(65)}`,
} as const satisfies Readonly<Record<string, Hex | number>>;

type Given = { readonly [V in keyof Values]?: unknown };

/** The input of any stage, with loose types. */
export interface AnyInput extends Omit<Given, keyof DefaultInputs>, Omit<DefaultInputs, 'data'> {
  readonly data?: unknown;
  readonly variant?: string;
  readonly duration?: number | undefined;
  next?(value: never): Awaitable<unknown>;
}

function outgoingFor(given: Partial<OutgoingRequest> = {}): OutgoingRequest {
  return Object.freeze({ method: 'GET', url: 'https://api.example.com/', headers: {}, body: undefined, ...given });
}

/** Makes an endpoint for requests of a test. @param members those that matter to the test. */
export function testEndpoint(members: Partial<Endpoint> = {}): Endpoint {
  return Object.freeze({
    id: `0x${'11'.repeat(32)}` as const,
    api: 'test-api',
    name: 'test-endpoint',
    mode: 'sync',
    auth: [{ type: 'free' }],
    block: {},
    apiBlock: {},
    ...members,
  });
}

const request = outgoingFor();

/** The question of tests that give none. Its `with` takes other parameters, but its request stays the same. */
export const sampleQuestion: Question = new AskedQuestion({
  ...{ parameters: {}, reserved: {}, request, requestHash: undefined },
  key: () => 'k'.repeat(43),
  requestFor: () => request,
});

/** The default insides of around stages. */
export const inside = {
  /** Returns an answer that passes as signed by the service. */
  answer: (question: Question, endpointId: Hex) =>
    madeHere(
      { ...sample, endpointId, field: 'data', value: sample.data, extra: undefined, proof: undefined },
      question,
    ),
  callApi: (request: OutgoingRequest) => ({ data: null, status: 200, text: 'null', request }),
};

/** Functions that turn the short inputs of a test into a stage's arguments. */
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
  onError: ({ status = 502, message = 'API call failed', stage = 'callApi' }, endpointId) => ({
    refusal: new Refusal(status, message, { stage }),
    endpointId,
  }),
};

/**
 * Returns the arguments of a stage's functions, without the exchange.
 * @throws TypeError if a value is missing that has no default.
 */
export function valuesOf(name: StageName, input: AnyInput, exchange: TestExchange, endpointId: string): unknown[] {
  const { data = sample.data, parameters = exchange.parameters, question = sampleQuestion, outgoing } = input;
  const { public: isPublic, takes } = stages[name];
  const given: Given = {
    ...input,
    data,
    parameters: isPublic ? plainObject(parameters) : parameters,
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
