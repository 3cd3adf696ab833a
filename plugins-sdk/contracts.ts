import { validateHeaderName, validateHeaderValue } from 'node:http';
import { isRecord } from '../kernel/plain-json.ts';
import { CheckedStream, isStream } from './body-stream.ts';
import { requestHash } from './context-keys.ts';
import { type Hex, isHex } from './hex.ts';
import { LongResponse } from './json/long-response.ts';
import { SentJson } from './json/plain.ts';
import { STEP, type Steps } from './json/turns.ts';
import { JsonText } from './json-text.ts';
import {
  type ApiResponse,
  type Contracts,
  type Encoded,
  type Endpoint,
  type Exchange,
  type Headers,
  type HttpResponse,
  type Json,
  type Parameters,
  plainObject,
  type Signed,
  type SignRequest,
  WrongShape,
} from './kernel.ts';
import { isFiniteJson } from './numbers.ts';
import { copyInSteps, deepFreeze, publicHooks } from './public-hooks.ts';
import { isChecked, requireSigned } from './signed.ts';
import { SignedResponse } from './signed-response.ts';

type Members = Readonly<Record<string, unknown>>;

function ensure(condition: boolean, detail?: string): asserts condition {
  if (!condition) throw new WrongShape(wrong(detail));
}

function wrong(detail?: string): string {
  return `returned something of the wrong shape${detail === undefined ? '' : `: ${detail}`}`;
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}

function isInteger(value: unknown): value is number {
  return Number.isInteger(value);
}

function membersOf(value: unknown): Members {
  ensure(isRecord(value));
  return value;
}

function yes(value: unknown): true {
  ensure(value === true);
  return value;
}

/** It is handed on as it is, because plugins know it by its identity. */
function endpointOf(value: unknown): Endpoint {
  const { id, api, name, mode, auth } = membersOf(value);
  ensure(isHex(id) && [api, name, mode].every(isString) && Array.isArray(auth));
  return value as Endpoint;
}

/** Frozen ones are not looked through again. */
function parametersOf(value: unknown): Parameters {
  return deepFreeze(membersOf(value)) as Parameters;
}

function ciphertext(value: unknown): Hex {
  ensure(isHex(value) && value !== '0x');
  return value;
}

/** They belong to the message and the connection, which the server alone knows (RFC 9110, sections 6.6, 7.6 and 8.6). */
const FRAMING: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Characters of headers, of which most clients take no more than twice as many. */
const MAX_HEADERS = 8192;

/** Frozen objects that were looked at once. */
const known = new WeakSet<object>();

/** A frozen copy of headers that HTTP can carry. */
function headersOf(value: unknown): Headers {
  const given = membersOf(value);
  if (known.has(given)) return given as Headers;
  const headers: Record<string, string> = {};
  let size = 0;
  for (const [name, text] of Object.entries(given)) {
    ensure(isString(text) && canBeSent(name, text), `the header ${JSON.stringify(name)} cannot be sent`);
    ensure(!FRAMING.has(name.toLowerCase()), `the header ${name} is the connection's own`);
    headers[name] = text;
    size += name.length + text.length;
  }
  ensure(size <= MAX_HEADERS, `the headers are longer than ${MAX_HEADERS} characters`);
  if (Object.isFrozen(given)) known.add(given);
  known.add(Object.freeze(headers));
  return headers;
}

function canBeSent(name: string, text: string): boolean {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, text);
    return true;
  } catch {
    return false;
  }
}

/** What one plugin adds to the headers of those before it; it can replace theirs, and not take them away. */
function headersAfter(value: unknown, [before]: readonly unknown[]): Headers {
  const added = headersOf(value);
  const others = headersOf(before);
  return Object.keys(others).length === 0 ? added : headersOf({ ...others, ...added });
}

/** A response as it was when it was returned; what is sent as JSON is JSON. @param plugin that returned it. */
function httpResponseOf(value: unknown, _args: readonly unknown[], plugin: string): HttpResponse {
  const { status, headers: given, body } = membersOf(value);
  ensure(isInteger(status) && status >= 200 && status <= 599);
  const headers = given === undefined ? undefined : headersOf(given);
  const checked = bodyOf(status, headers, body, plugin);
  return headers === undefined ? { status, body: checked } : { status, headers, body: checked };
}

function bodyOf(status: number, headers: Headers | undefined, body: unknown, plugin: string): HttpResponse['body'] {
  // These have no content, and no length of any (RFC 9110, section 8.6).
  const isEmpty = status === 204 || status === 304;
  if (isStream(body)) {
    ensure(!isEmpty, `${status} has no body, and none that streams`);
    ensure(!isSentAsJson(headers), 'a stream needs a media type other than JSON');
    return new CheckedStream(body, plugin);
  }
  if (isEmpty) return '';
  if (JsonText.is(body)) return body;
  if (body instanceof Uint8Array) {
    ensure(!isSentAsJson(headers), 'bytes need a media type other than JSON');
    return Uint8Array.from(body);
  }
  ensure(isString(body));
  ensure(body === '' || !isSentAsJson(headers) || isJson(body), 'the body is no JSON');
  return body;
}

/** What names no other type is sent as JSON. */
function isSentAsJson(headers: Headers = {}): boolean {
  const name = Object.keys(headers).find((key) => key.toLowerCase() === 'content-type');
  return name === undefined || /^application\/(?:[\w.-]+\+)?json\b/i.test(headers[name] ?? '');
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function signedResponseOf(value: unknown): SignedResponse {
  if (SignedResponse.is(value)) return value;
  const { json } = membersOf(value);
  ensure(isString(json));
  try {
    return SignedResponse.parse(json);
  } catch (error) {
    throw new WrongShape(wrong(error instanceof TypeError ? error.message : 'an answer is JSON'));
  }
}

/** Members of every answer. */
const RESERVED: ReadonlySet<string> = new Set(['node', 'endpointId', 'timestamp', 'signature', 'proof', '__proto__']);

/** Members that modes add in front. */
const ADDED = ['requestId', 'status', 'done'];

/** No value of an answer stands under the name of another member. */
const TAKEN: ReadonlySet<string> = new Set([...RESERVED, ...ADDED, 'receipt', 'signatures']);

/** Each member is read once: what is looked at here is what is signed and shown. */
function encodedOf(value: unknown): Encoded {
  const { bytes, field, value: shown } = membersOf(value);
  ensure(isHex(bytes) && isString(field) && field !== '');
  ensure(!TAKEN.has(field), `the field ${field} has another meaning`);
  if (shown === bytes || JsonText.is(shown)) return { bytes, field, value: shown };
  ensure(isFiniteJson(shown as Json), 'the value holds a number that JSON cannot carry');
  return { bytes, field, value: JsonText.stringify(shown) };
}

function responseOf(value: unknown): ApiResponse | Steps<ApiResponse> {
  // To read all of its members would be to parse it.
  if (LongResponse.is(value)) return value;
  const { status, data, text } = membersOf(value);
  ensure(isInteger(status) && data !== undefined && (text === undefined || isString(text)));
  if (text === undefined || text.length > STEP)
    return copyInSteps(status, text === undefined ? data : new SentJson(text));
  return Object.freeze({ status, data: data as Json, text });
}

/** What stands beside a signature cannot take the place of what was signed. */
const SHOWN: ReadonlySet<string> = new Set([...RESERVED, ...ADDED, 'data', 'rawData']);

/** Whoever signs is checked before anybody sees it, unless it is known to be checked. @throws Refusal 502 */
function signedOf(value: unknown, [request, exchange]: readonly unknown[]): Signed {
  if (isChecked(value)) return value;
  const { node, signature, beside } = membersOf(value);
  ensure(isHex(node) && node !== '0x' && isHex(signature) && signature !== '0x');
  const further = beside === undefined ? undefined : plainObject(membersOf(beside));
  const asked = requestHash.get(exchange as Exchange);
  const { receipt, signatures = [] } = further ?? {};
  for (const name of Object.keys(further ?? {}))
    ensure(!SHOWN.has(name) && (name !== 'receipt' || asked !== undefined), `the field ${name} has another meaning`);
  if (asked !== undefined) ensure(isRecord(receipt), 'the endpoint has receipts, and the plugin that signs made none');
  ensure(Array.isArray(signatures) && signatures.every(isRecord), 'signatures is no list of objects');
  const signed = further === undefined ? { node, signature } : { node, signature, beside: further as Signed['beside'] };
  requireSigned(signed, request as SignRequest, asked);
  return signed;
}

/** How what plugins return is read, stage by stage: by the kind of value, or by the public hook. */
export const contracts: Contracts = {
  contexts: publicHooks,
  // One that is parsed when it is looked at is frozen then.
  protect: (response) => void (LongResponse.is(response) || deepFreeze(response.data)),
  results: {
    allowed: yes,
    endpoint: endpointOf,
    parameters: parametersOf,
    httpResponse: httpResponseOf,
    signedResponse: signedResponseOf,
    response: responseOf,
    encoded: encodedOf,
    data: ciphertext,
    signed: signedOf,
    proof: (value) => plainObject(membersOf(value)),
    headers: headersAfter,
  },
};
