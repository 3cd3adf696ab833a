import { isDeepStrictEqual } from 'node:util';
import type { ApiResponse, Json, OutgoingRequest } from '../../kernel/values.ts';
import { readJson } from '../../lib/json/read.ts';
import { privateMark } from '../../lib/objects.ts';
import { copyOf } from '../hooks/results.ts';
import { ensure, isString, membersOf } from './members.ts';
import { outgoingOf } from './outgoing.ts';

const MEMBERS = ['status', 'data', 'text', 'request'];

/** Responses that were read before. A plugin that passes one on returns the same object, which is not copied again. */
const known = privateMark<ApiResponse>();

/** Marks a response as checked, for a plugin that knows that `text` is the JSON of `data`. */
export function keep(response: ApiResponse): ApiResponse {
  return Object.freeze(known.add(response));
}

/**
 * Reads the result of a function at `callApi`.
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
  // A plugin may have spread a response and changed `data` only: the old `text` must then not be encoded.
  if (text === undefined || written === undefined || !isDeepStrictEqual(written, data))
    return keep(copyOf(Number(status), data, request));
  return keep({ status: Number(status), data: written, text, ...(request && { request }) });
}

/** Returns the data of a JSON text. An empty text means a response without a body. */
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
