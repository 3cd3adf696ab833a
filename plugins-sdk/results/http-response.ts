import { errorForLog, isRefusal, Refusal } from '../../kernel/refusal.ts';
import { type BodyStream, type Headers, type HttpResponse, isStream } from '../../kernel/values.ts';
import { JsonText } from '../../lib/json/json-text.ts';
import { isPlain, isRecord, isString, jsonIn } from '../../lib/json/value.ts';
import { isHeaderValue, isToken, RESERVED_HEADERS } from '../checks.ts';
import { ensure, isStatus, membersOf, wrong } from './members.ts';

const HTTP_RESPONSE = ['status', 'headers', 'body'];

/** Returns a checked copy of a response; a body that is sent as JSON must be JSON. @param plugin the one that returned it. */
export function httpResponseOf(value: unknown, _args: readonly unknown[] = [], plugin = ''): HttpResponse {
  const { status, headers: given, body } = membersOf(value, HTTP_RESPONSE);
  ensure(isStatus(status, 200), 'status must be an integer from 200 to 599');
  const headers = given === undefined ? undefined : headersOf(given);
  const checked = bodyOf(status, headers, body, plugin);
  return headers === undefined ? { status, body: checked } : { status, headers, body: checked };
}

function bodyOf(status: number, headers: Headers | undefined, body: unknown, plugin: string): HttpResponse['body'] {
  // Responses of these statuses have neither content nor its length (RFC 9110, section 8.6).
  const isEmpty = status === 204 || status === 304;
  if (isStream(body)) {
    ensure(!isEmpty, `${status} has no body, and none that streams`);
    ensure(!isSentAsJson(headers), 'a stream needs a media type other than JSON');
    return checkedStream(body, plugin);
  }
  if (isEmpty) return '';
  if (JsonText.is(body)) return body;
  if (body instanceof Uint8Array) {
    ensure(!isSentAsJson(headers), 'bytes need a media type other than JSON');
    return Uint8Array.from(body);
  }
  ensure(isString(body), 'body must be a text or bytes');
  ensure(body === '' || !isSentAsJson(headers) || jsonIn(body) !== undefined, 'the body is no JSON');
  return body;
}

/** Returns whether a body is sent as JSON: the headers name no other media type. */
function isSentAsJson(headers: Headers = {}): boolean {
  const name = Object.keys(headers).find((key) => key.toLowerCase() === 'content-type');
  return name === undefined || /^application\/(?:[\w.-]+\+)?json\b/i.test(headers[name] ?? '');
}

/** Headers of the message and the connection, which the server alone sets (RFC 9110, sections 6.6, 7.6 and 8.6). */
const FRAMING: ReadonlySet<string> = new Set([...RESERVED_HEADERS, 'trailer']);

/** Most characters of all headers together. Most clients accept no more than twice as many. */
const MAX_HEADERS = 8192;

/** Checked copies of frozen headers, which plugins return again and again: a check is dear. */
const copies = new WeakMap<object, Headers>();

/**
 * Returns a frozen copy of headers, after checking that HTTP can carry them.
 * @param before checked headers to add them to; headers of the same name are replaced.
 * @throws WrongShape
 */
export function headersOf(value: unknown, before: Headers = {}): Headers {
  if (!isRecord(value) || !isPlain(value)) throw wrong('headers must be an object of texts');
  const added = copies.get(value) ?? copyOf(value);
  if (Object.keys(before).length === 0) return added;
  const headers: Record<string, string> = { ...before };
  for (const name in added) {
    // Names of headers are the same in any case.
    for (const other in before)
      if (other.length === name.length && other.toLowerCase() === name.toLowerCase()) delete headers[other];
    headers[name] = added[name] ?? '';
  }
  return bounded(headers);
}

function bounded(headers: Headers): Headers {
  let size = 0;
  for (const name in headers) size += name.length + (headers[name]?.length ?? 0);
  ensure(size <= MAX_HEADERS, `the headers are longer than ${MAX_HEADERS} characters`);
  return Object.freeze(headers);
}

function copyOf(value: Readonly<Record<string, unknown>>): Headers {
  const headers: Record<string, string> = {};
  for (const [name, text] of Object.entries(value)) {
    if (!isString(text)) throw wrong(`the header ${JSON.stringify(name)} must be a text`);
    if (!isToken(name) || !isHeaderValue(text)) throw wrong(`the header ${JSON.stringify(name)} cannot be sent`);
    ensure(!FRAMING.has(name.toLowerCase()), `the header ${name} is the connection's own`);
    headers[name] = text;
  }
  const hasGetter = () => Object.values(Object.getOwnPropertyDescriptors(value)).some(({ get }) => get !== undefined);
  const copy = bounded(headers);
  if (Object.isFrozen(value) && !hasGetter()) copies.set(value, copy);
  return copy;
}

/** Returns a plugin's streaming body with its errors in the plugin's name. A chunk that is neither text nor bytes is an error, too. */
function checkedStream(body: AsyncIterable<unknown>, plugin: string): BodyStream {
  return {
    [Symbol.asyncIterator]() {
      let made: AsyncIterator<unknown> | undefined;
      const ask = async (work: (iterator: AsyncIterator<unknown>) => Promise<IteratorResult<string | Uint8Array>>) => {
        try {
          made ??= body[Symbol.asyncIterator]();
          return await work(made);
        } catch (error) {
          if (isRefusal(error)) throw error;
          throw new Refusal(500, 'Internal server error', { reason: `plugin "${plugin}": ${errorForLog(error)}` });
        }
      };
      return {
        next: () => ask(chunkOf),
        return: () => ask(async (iterator) => ({ done: true, value: await iterator.return?.() })),
      };
    },
  };
}

async function chunkOf(iterator: AsyncIterator<unknown>): Promise<IteratorResult<string | Uint8Array>> {
  const { done, value } = await iterator.next();
  if (done) return { done, value: undefined };
  if (typeof value === 'string' || value instanceof Uint8Array) return { done: false, value };
  // The body may have something to clean up, as after a `for await` that ends early.
  const returned = async () => iterator.return?.();
  returned().catch(() => undefined);
  throw new TypeError('a chunk of a stream is text or bytes');
}
