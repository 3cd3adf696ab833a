import type { Headers } from '../../kernel/values.ts';
import { isPlain, isRecord } from '../../lib/json/value.ts';
import { isHeaderValue, isToken } from '../checks.ts';
import { ensure, isString, wrong } from './members.ts';

/** Headers of the message and the connection, which the server alone sets (RFC 9110, sections 6.6, 7.6 and 8.6). */
const FRAMING: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Most characters of all headers together. Most clients accept no more than twice as many. */
const MAX_HEADERS = 8192;

/**
 * Returns a frozen copy of headers, after checking that HTTP can carry them.
 * @param before checked headers to add them to; headers of the same name are replaced.
 * @throws WrongShape
 */
export function headersOf(value: unknown, before?: Headers): Headers {
  if (!isRecord(value) || !isPlain(value)) throw wrong('headers must be an object of texts');
  const headers: Record<string, string> = { ...before };
  for (const [name, text] of Object.entries(value)) {
    if (!isString(text)) throw wrong(`the header ${JSON.stringify(name)} must be a text`);
    if (!isToken(name) || !isHeaderValue(text)) throw wrong(`the header ${JSON.stringify(name)} cannot be sent`);
    ensure(!FRAMING.has(name.toLowerCase()), `the header ${name} is the connection's own`);
    // Names of headers are the same in any case.
    for (const other in before) if (isSameName(other, name)) delete headers[other];
    headers[name] = text;
  }
  let size = 0;
  for (const name in headers) size += name.length + (headers[name]?.length ?? 0);
  ensure(size <= MAX_HEADERS, `the headers are longer than ${MAX_HEADERS} characters`);
  return Object.freeze(headers);
}

function isSameName(a: string, b: string): boolean {
  return a.length === b.length && a.toLowerCase() === b.toLowerCase();
}

/** Adds one plugin's headers to those of earlier plugins, which it can replace but not remove. */
export function headersAfter(value: unknown, [before]: readonly unknown[]): Headers {
  // Earlier plugins' headers were checked when they were returned.
  return headersOf(value, before as Headers);
}
