import { validateHeaderName, validateHeaderValue } from 'node:http';
import { isRecord } from '../kernel/plain-json.ts';
import { requireAnswer, type Vouchers } from './answers.ts';
import { type Hex, isHex } from './hex.ts';
import { LongResponse } from './json/long-response.ts';
import { JsonText } from './json-text.ts';
import {
  type Contracts,
  type Encoded,
  type Endpoint,
  type Exchange,
  type Headers,
  type HttpResponse,
  type Json,
  type OutgoingRequest,
  type Parameters,
  plainObject,
  type Question,
  type Signed,
  type SignRequest,
  WrongShape,
} from './kernel.ts';
import { isFiniteJson } from './numbers.ts';
import { outgoingOf } from './outgoing.ts';
import { deepFreeze, publicHooks } from './public-hooks.ts';
import { AskedQuestion } from './question.ts';
import { readResponse } from './read-response.ts';
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

/** A response as it was when it was returned; what is sent as JSON is JSON. */
export function httpResponseOf(value: unknown): HttpResponse {
  const { status, headers: given, body } = membersOf(value);
  ensure(isInteger(status) && status >= 200 && status <= 599);
  const headers = given === undefined ? undefined : headersOf(given);
  const checked = bodyOf(status, headers, body);
  return headers === undefined ? { status, body: checked } : { status, headers, body: checked };
}

function bodyOf(status: number, headers: Headers | undefined, body: unknown): HttpResponse['body'] {
  // These have no content, and no length of any (RFC 9110, section 8.6).
  if (status === 204 || status === 304) return '';
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

/** What stands beside a signature cannot take the place of what was signed. */
const SHOWN: ReadonlySet<string> = new Set([...RESERVED, ...ADDED, 'data', 'rawData']);

/** Whoever signs is checked before anybody sees it, unless it is known to be checked. @throws Refusal 502 */
function signedOf(value: unknown, [given]: readonly unknown[]): Signed {
  if (isChecked(value)) return value;
  const { node, signature, beside } = membersOf(value);
  ensure(isHex(node) && node !== '0x' && isHex(signature) && signature !== '0x');
  const further = beside === undefined ? undefined : plainObject(membersOf(beside));
  const request = given as SignRequest;
  const asked = request.requestHash;
  const { receipt, signatures = [] } = further ?? {};
  for (const name of Object.keys(further ?? {}))
    ensure(!SHOWN.has(name) && (name !== 'receipt' || asked !== undefined), `the field ${name} has another meaning`);
  if (asked !== undefined) ensure(isRecord(receipt), 'the endpoint has receipts, and the plugin that signs made none');
  ensure(Array.isArray(signatures) && signatures.every(isRecord), 'signatures is no list of objects');
  const signed = further === undefined ? { node, signature } : { node, signature, beside: further as Signed['beside'] };
  requireSigned(signed, request, asked);
  return signed;
}

/** Characters of what one plugin varies a question by. */
const MAX_VARIATION = 4096;

/** Each plugin's text joins those before it: none can take the place of another's. */
function variationOf(value: unknown, [before]: readonly unknown[], plugin: string): string {
  ensure(isString(value), 'a variation must be a text');
  ensure(value.length <= MAX_VARIATION, `a variation must have at most ${MAX_VARIATION} characters`);
  return `${String(before)}\n${JSON.stringify([plugin, value])}`;
}

function questionOf(value: unknown): AskedQuestion {
  ensure(AskedQuestion.is(value), 'a question must be a new AskedQuestion of the SDK');
  return value;
}

/** The same question, perhaps asked otherwise. */
function sameQuestion(value: unknown, [given]: readonly unknown[]): AskedQuestion {
  if (value === given) return value as AskedQuestion;
  if (!AskedQuestion.is(value) || !AskedQuestion.isSame(value, given as AskedQuestion))
    throw new WrongShape('next takes the question that the function got, or one that its "with" made');
  return value;
}

/** How what plugins return is read, stage by stage: by the kind of value, or by the public hook. */
export function contractsFor(vouchers: Vouchers): Contracts {
  return {
    contexts: publicHooks,
    // One that is parsed when it is looked at is frozen then.
    protect: (response) => void (LongResponse.is(response) || deepFreeze(response.data)),
    inputs: {
      answer: sameQuestion,
      callApi: (value, [given]) => (value === given ? (value as OutgoingRequest) : outgoingOf(value, 'the request')),
    },
    results: {
      allowed: yes,
      released: (value) => void yes(value),
      endpoint: endpointOf,
      parameters: parametersOf,
      variation: variationOf,
      question: questionOf,
      httpResponse: httpResponseOf,
      signedResponse: (value, [question, exchange]) => {
        const answer = signedResponseOf(value);
        const { requestHash } = question as Question;
        requireAnswer(answer, { endpointId: (exchange as Exchange).endpoint.id, requestHash }, vouchers);
        return answer;
      },
      response: (value, [given]) => readResponse(value, given),
      encoded: encodedOf,
      data: ciphertext,
      signed: signedOf,
      proof: (value) => plainObject(membersOf(value)),
      headers: headersAfter,
    },
  };
}
