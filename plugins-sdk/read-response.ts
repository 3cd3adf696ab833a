import { isRecord } from '../kernel/plain-json.ts';
import { LongResponse } from './json/long-response.ts';
import { SentJson } from './json/plain.ts';
import { STEP, type Steps } from './json/turns.ts';
import { type ApiResponse, type Json, type OutgoingRequest, WrongShape } from './kernel.ts';
import { outgoingOf } from './outgoing.ts';
import { copyInSteps } from './public-hooks.ts';

/** Responses that were read before: who hands one on keeps its identity, and it is not copied again. */
const known = new WeakSet<object>();

function keep(response: ApiResponse): ApiResponse {
  known.add(Object.freeze(response));
  return response;
}

/**
 * Reads what `callApi` returned.
 * @param given the request that the function got.
 * @throws WrongShape
 */
export function readResponse(value: unknown, given: unknown): ApiResponse | Steps<ApiResponse> {
  if (!isRecord(value)) throw new WrongShape('returned no {status, data}');
  if (known.has(value)) return value as unknown as ApiResponse;
  // To read all of its members would be to parse it.
  if (LongResponse.is(value)) {
    requestOf(value.request, given);
    return value;
  }
  const { status, data, text } = value;
  if (!Number.isInteger(status)) throw new WrongShape('returned a response whose status must be a whole number');
  if (data === undefined) throw new WrongShape('returned a response without data');
  if (text !== undefined && typeof text !== 'string')
    throw new WrongShape('returned a response whose text must be a text');
  const request = requestOf(value.request, given);
  if (text === undefined || text.length > STEP)
    return copied(Number(status), text === undefined ? data : new SentJson(text), request);
  return keep({ status: Number(status), data: data as Json, text, ...(request && { request }) });
}

function* copied(status: number, data: unknown, request: OutgoingRequest | undefined): Steps<ApiResponse> {
  return keep(yield* copyInSteps(status, data, request));
}

function requestOf(request: unknown, given: unknown): OutgoingRequest | undefined {
  if (request === undefined || request === given) return request as OutgoingRequest | undefined;
  return outgoingOf(request, 'returned a response whose request');
}
