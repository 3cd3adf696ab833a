import { isDeepStrictEqual } from 'node:util';
import { STEP } from '../../lib/json/turns.ts';
import { privateNotes } from '../../lib/objects/private-notes.ts';
import { copyOf } from '../hooks/results.ts';
import type { ApiResponse, Json, OutgoingRequest } from '../kernel.ts';
import { LongResponse } from './long-response.ts';
import { ensure, isString, membersOf } from './members.ts';
import { outgoingOf } from './outgoing.ts';
import { SentJson } from './plain.ts';

const MEMBERS = ['status', 'data', 'text', 'request'];

/** Responses that were read before. A plugin that hands one on returns the same object, which is not copied again. */
const known = privateNotes<true>();

/** For the built-in that asks upstreams: `data` is what `text` says. */
export function keep(response: ApiResponse): ApiResponse {
  return known.set(Object.freeze(response), true);
}

/**
 * Reads what `callApi` returned.
 * @param given the request that the function got.
 * @throws WrongShape
 */
export function readResponse(value: unknown, given: unknown): ApiResponse {
  if (known.get(value)) return value as unknown as ApiResponse;
  // Reading all of its members would parse it.
  if (LongResponse.is(value)) {
    requestOf(value.request, given);
    return value;
  }
  const { status, data, text, request: sent } = membersOf(value, MEMBERS);
  ensure(Number.isInteger(status), 'status must be an integer');
  ensure(data !== undefined, 'data must be JSON');
  ensure(text === undefined || isString(text), 'text must be a text');
  const request = requestOf(sent, given);
  // A plugin that spread what it got and changed the data has changed what is encoded, too.
  if (text === undefined || !isTextOf(text, data)) return keep(copyOf(Number(status), data, request));
  if (text.length > STEP) return keep(copyOf(Number(status), new SentJson(text), request));
  return keep({ status: Number(status), data: data as Json, text, ...(request && { request }) });
}

/** An empty text stands for an answer without a body. */
function isTextOf(text: string, data: unknown): boolean {
  try {
    return isDeepStrictEqual(text === '' ? null : JSON.parse(text), data);
  } catch {
    return false;
  }
}

function requestOf(request: unknown, given: unknown): OutgoingRequest | undefined {
  if (request === undefined || request === given) return request as OutgoingRequest | undefined;
  return outgoingOf(request, 'returned a response whose request');
}
