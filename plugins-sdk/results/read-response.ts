import { isDeepStrictEqual } from 'node:util';
import { readJson } from '../../lib/json/read.ts';
import { privateMark } from '../../lib/objects/private-mark.ts';
import { copyOf } from '../hooks/results.ts';
import type { ApiResponse, Json, OutgoingRequest } from '../kernel.ts';
import { ensure, isString, membersOf } from './members.ts';
import { outgoingOf } from './outgoing.ts';

const MEMBERS = ['status', 'data', 'text', 'request'];

/** Responses that were read before. A plugin that hands one on returns the same object, which is not copied again. */
const known = privateMark<ApiResponse>();

/** For the plugin that asks upstreams: `text` is the JSON of `data`. */
export function keep(response: ApiResponse): ApiResponse {
  return Object.freeze(known.add(response));
}

/**
 * Reads what `callApi` returned.
 * @param given the request that the function got.
 * @throws WrongShape
 */
export function readResponse(value: unknown, given: unknown): ApiResponse {
  if (known.has(value)) return value;
  const { status, data, text, request: sent } = membersOf(value, MEMBERS);
  ensure(Number.isInteger(status), 'status must be an integer');
  ensure(data !== undefined, 'data must be JSON');
  ensure(text === undefined || isString(text), 'text must be a text');
  const request = requestOf(sent, given);
  const written = text === undefined ? undefined : dataIn(text);
  // A plugin that spread what it got and changed the data has changed what is encoded, too.
  if (text === undefined || written === undefined || !isDeepStrictEqual(written, data))
    return keep(copyOf(Number(status), data, request));
  return keep({ status: Number(status), data: written, text, ...(request && { request }) });
}

/** An empty text stands for an answer without a body. */
function dataIn(text: string): Json | undefined {
  try {
    return text === '' ? null : readJson(text);
  } catch {
    return undefined;
  }
}

function requestOf(request: unknown, given: unknown): OutgoingRequest | undefined {
  if (request === undefined || request === given) return request as OutgoingRequest | undefined;
  return outgoingOf(request, 'returned a response whose request');
}
