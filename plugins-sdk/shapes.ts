import { validateHeaderName, validateHeaderValue } from 'node:http';
import { isHex } from './hex.ts';
import { LongResponse } from './json/long-response.ts';
import { Answer, JsonText, plainObject, type Shapes, WrongShape } from './kernel.ts';

type Members = Readonly<Record<string, unknown>>;
type Headers = Readonly<Record<string, string>>;

function ensure(condition: boolean, detail?: string): asserts condition {
  if (condition) return;
  throw new WrongShape(`returned something of the wrong shape${detail === undefined ? '' : `: ${detail}`}`);
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}

function isInteger(value: unknown): value is number {
  return Number.isInteger(value);
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function membersOf(value: unknown): Members {
  ensure(isMembers(value));
  return value;
}

/** For what is handed on as it is, because others know it by its identity or own it. */
function checked(isSound: (members: Members) => boolean) {
  return (value: unknown): unknown => {
    ensure(isSound(membersOf(value)));
    return value;
  };
}

function yes(value: unknown): unknown {
  ensure(value === true);
  return value;
}

function ciphertext(value: unknown): unknown {
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

/** A reply as it was when it was returned; what is sent as JSON is JSON. */
function replyOf(value: unknown): unknown {
  const { status, headers: given, body } = membersOf(value);
  ensure(isInteger(status) && status >= 200 && status <= 599);
  const headers = given === undefined ? undefined : headersOf(given);
  const reply = { status, ...(headers && { headers }) };
  // These have no content, and no length of any (RFC 9110, section 8.6).
  if (status === 204 || status === 304) return { ...reply, body: '' };
  if (JsonText.is(body)) return { ...reply, body };
  ensure(isString(body));
  ensure(body === '' || !isSentAsJson(headers) || isJson(body), 'the body is no JSON');
  return { ...reply, body };
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

function answerOf(value: unknown): unknown {
  if (Answer.is(value)) return value;
  const { json } = membersOf(value);
  ensure(isString(json));
  try {
    return Answer.parse(json);
  } catch (error) {
    ensure(false, error instanceof TypeError ? error.message : 'an answer is JSON');
  }
}

/** Each member is read once: what is looked at here is what is signed and shown. */
function encodedOf(value: unknown): unknown {
  const { bytes, field, value: shown } = membersOf(value);
  ensure(isHex(bytes) && isString(field));
  return { bytes, field, value: shown === bytes || JsonText.is(shown) ? shown : JsonText.stringify(shown) };
}

function responseOf(value: unknown): unknown {
  // To read all of its members would be to parse it.
  if (LongResponse.is(value)) return value;
  const { status, data, text } = membersOf(value);
  ensure(isInteger(status) && data !== undefined && (text === undefined || isString(text)));
  return { status, data, ...(text === undefined ? {} : { text }) };
}

function signedOf(value: unknown): unknown {
  const { node, signature } = membersOf(value);
  ensure(isHex(node) && isHex(signature));
  return { node, signature };
}

/** How what plugins return from the stages that have no adapter, and from routes, is read. */
export const shapes: Shapes = {
  admit: yes,
  resolve: checked(
    ({ id, api, name, mode, auth }) => isHex(id) && [api, name, mode].every(isString) && Array.isArray(auth),
  ),
  read: checked(() => true),
  authenticate: yes,
  validate: checked(() => true),
  deliver: replyOf,
  lookup: answerOf,
  callApi: responseOf,
  encode: encodedOf,
  encrypt: ciphertext,
  sign: signedOf,
  prove: (value) => plainObject(membersOf(value)),
  respond: headersAfter,
  route: replyOf,
};
