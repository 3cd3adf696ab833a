import { WrongShape } from '../../kernel/stages.ts';
import type { Headers, OutgoingRequest, Parameters } from '../../kernel/values.ts';
import { urlIn } from '../../lib/http/target.ts';
import { isRecord } from '../../lib/json/value.ts';
import { privateMark } from '../../lib/objects.ts';
import { checkHeaderName, isHeaderValue, isToken } from '../checks.ts';

/** Checked copies, which need no second check when a plugin passes them on. */
const known = privateMark<OutgoingRequest>();

function ensure(condition: boolean, what: string): asserts condition {
  if (!condition) throw new WrongShape(what);
}

/**
 * Returns a frozen copy of a request that can be sent, to any origin. Errors show neither the URL nor values: both may be secret.
 * @param at the name of the request in errors.
 * @param pathValues those of the request that it replaces.
 * @throws WrongShape
 */
export function outgoingOf(value: unknown, at: string, pathValues?: Parameters): OutgoingRequest {
  ensure(isRecord(value), `${at} must be {method, url, headers, body}`);
  if (known.has(value)) return value;
  const { method, url, headers, body, callHeaders, timeout } = value;
  ensure(typeof method === 'string' && isToken(method), `${at}.method must be an HTTP method such as GET`);
  ensure(
    typeof url === 'string' && isCallable(url),
    `${at}.url must be an absolute http or https URL without credentials and fragment`,
  );
  ensure(body === undefined || typeof body === 'string', `${at}.body must be a text, or absent`);
  ensure(
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
  return Object.freeze(known.add(copy));
}

function isCallable(text: string): boolean {
  const url = urlIn(text);
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return false;
  return url.username === '' && url.password === '' && !text.includes('#');
}

function headersOf(value: unknown, at: string): Headers {
  ensure(isRecord(value), `${at} must be an object of texts`);
  const headers: Record<string, string> = {};
  const names = new Set<string>();
  for (const [name, text] of Object.entries(value)) {
    const named = `${at}[${JSON.stringify(name)}]`;
    ensure(typeof text === 'string' && isHeaderValue(text), `${named} must be a text that a header can carry`);
    ensure(checkHeaderName('', name).length === 0, `${named} is no header that can be set`);
    ensure(!names.has(name.toLowerCase()), `${named} is there twice: case does not count`);
    names.add(name.toLowerCase());
    headers[name] = text;
  }
  return Object.freeze(headers);
}
