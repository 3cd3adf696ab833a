import { isDeepStrictEqual } from 'node:util';
import { WrongShape } from '../../kernel/stages.ts';
import type { ApiResponse, Headers, Json, OutgoingRequest, Parameters } from '../../kernel/values.ts';
import { urlIn } from '../../lib/http/target.ts';
import { readJson } from '../../lib/json/json-text.ts';
import { isRecord, isString } from '../../lib/json/value.ts';
import { checkHeaderName, isHeaderValue, isToken } from '../checks.ts';
import { copyOf } from '../hooks/results.ts';
import { ensure, membersOf } from './members.ts';

/** Checked copies of requests, which need no second check when a plugin passes them on. */
const knownRequests = new WeakSet<object>();

function ensureRequest(condition: boolean, what: string): asserts condition {
  if (!condition) throw new WrongShape(what);
}

/**
 * Returns a frozen copy of a request that can be sent, to any origin. Errors show neither the URL nor values: both may be secret.
 * @param at the name of the request in errors.
 * @param pathValues those of the request that it replaces.
 * @throws WrongShape
 */
export function outgoingOf(value: unknown, at: string, pathValues?: Parameters): OutgoingRequest {
  if (knownRequests.has(Object(value))) return value as OutgoingRequest;
  ensureRequest(isRecord(value), `${at} must be {method, url, headers, body}`);
  const { method, url, headers, body, callHeaders, timeout } = value;
  ensureRequest(typeof method === 'string' && isToken(method), `${at}.method must be an HTTP method such as GET`);
  ensureRequest(
    typeof url === 'string' && isCallable(url),
    `${at}.url must be an absolute http or https URL without credentials and fragment`,
  );
  ensureRequest(body === undefined || typeof body === 'string', `${at}.body must be a text, or absent`);
  ensureRequest(
    timeout === undefined || (typeof timeout === 'number' && timeout > 0),
    `${at}.timeout must be more than 0, or absent`,
  );
  const copy = {
    method,
    url,
    headers: headersOf(headers, `${at}.headers`),
    body,
    ...(pathValues !== undefined && { pathValues }),
    ...(callHeaders !== undefined && { callHeaders: headersOf(callHeaders, `${at}.callHeaders`) }),
    ...(timeout !== undefined && { timeout }),
  };
  knownRequests.add(copy);
  return Object.freeze(copy);
}

function isCallable(text: string): boolean {
  const url = urlIn(text);
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return false;
  return url.username === '' && url.password === '' && !text.includes('#');
}

function headersOf(value: unknown, at: string): Headers {
  ensureRequest(isRecord(value), `${at} must be an object of texts`);
  const headers: Record<string, string> = {};
  const names = new Set<string>();
  for (const [name, text] of Object.entries(value)) {
    const named = `${at}[${JSON.stringify(name)}]`;
    ensureRequest(typeof text === 'string' && isHeaderValue(text), `${named} must be a text that a header can carry`);
    ensureRequest(checkHeaderName('', name).length === 0, `${named} is no header that can be set`);
    ensureRequest(!names.has(name.toLowerCase()), `${named} is there twice: case does not count`);
    names.add(name.toLowerCase());
    headers[name] = text;
  }
  return Object.freeze(headers);
}

const MEMBERS = ['status', 'data', 'text', 'request'];

/** Responses that were read before. A plugin that passes one on returns the same object, which is not copied again. */
const knownResponses = new WeakSet<object>();

/** Marks a response as checked, for a plugin that knows that `text` is the JSON of `data`. */
export function keep(response: ApiResponse): ApiResponse {
  knownResponses.add(response);
  return Object.freeze(response);
}

/**
 * Reads the result of a function at `callApi`.
 * @param given the request that the function got.
 * @throws WrongShape
 */
export function readResponse(value: unknown, given: unknown): ApiResponse {
  if (knownResponses.has(Object(value))) return value as ApiResponse;
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
