import { isPlain, isRecord } from '../../lib/json/value.ts';
import { isHeaderValue, isToken } from '../checks.ts';
import type { Headers } from '../kernel.ts';
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

/** Characters of headers; most clients take no more than twice as many. */
const MAX_HEADERS = 8192;

/** A frozen copy of headers that HTTP can carry. @param before headers that they stand beside, checked before; those of the same name they replace. */
export function headersOf(value: unknown, before?: Headers): Headers {
  if (!isRecord(value) || !isPlain(value)) throw wrong('headers must be an object of texts');
  const headers: Record<string, string> = { ...before };
  for (const [name, text] of Object.entries(value)) {
    if (!isString(text)) throw wrong(`the header ${JSON.stringify(name)} must be a text`);
    if (!isToken(name) || !isHeaderValue(text)) throw wrong(`the header ${JSON.stringify(name)} cannot be sent`);
    ensure(!FRAMING.has(name.toLowerCase()), `the header ${name} is the connection's own`);
    // One name, however its letters are written.
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

/** Adds one plugin's headers to those of the plugins before it. It can replace theirs, and not remove them. */
export function headersAfter(value: unknown, [before]: readonly unknown[]): Headers {
  // Headers of earlier plugins were checked when they returned them.
  return headersOf(value, before as Headers);
}
