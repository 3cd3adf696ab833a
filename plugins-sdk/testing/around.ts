import type { Hex } from '../../lib/eth/hex.ts';
import type { ApiResponse, OutgoingRequest, Question, SignedResponse } from '../kernel.ts';
import { AskedQuestion } from '../question.ts';
import { madeHere } from '../results/answers.ts';
import type { QuestionInput } from './inputs.ts';

/** What a signed answer has, where a test does not say. */
export const sample = {
  node: `0x${'11'.repeat(20)}`,
  timestamp: 1_700_000_000,
  data: `0x${'00'.repeat(32)}`,
  signature: `0x${'22'.repeat(65)}`,
} as const satisfies Readonly<Record<string, Hex | number>>;

export function outgoingFor(given: Partial<OutgoingRequest> = {}): OutgoingRequest {
  return Object.freeze({ method: 'GET', url: 'https://api.example.com/', headers: {}, body: undefined, ...given });
}

/** A question; pass what matters to the test. Its parameters are those that it is asked with again, and change nothing of its request. */
export function testQuestion(given: QuestionInput = {}): Question {
  const { parameters = {}, reserved = {}, key = 'k'.repeat(43), requestHash } = given;
  const request = outgoingFor(given.request);
  return new AskedQuestion({ parameters, reserved, request, requestHash, key: () => key, requestFor: () => request });
}

/** What is inside `answer`, where a test does not say: an answer as the service would have signed it. */
export function signedAnswer(question: Question, endpointId: Hex): SignedResponse {
  const parts = { ...sample, endpointId, field: 'data', value: sample.data };
  return madeHere({ ...parts, beside: undefined, proof: undefined }, question);
}

/** What is inside `callApi`, where a test does not say. */
export function apiResponse(request: OutgoingRequest): ApiResponse {
  return { data: null, status: 200, text: 'null', request };
}
