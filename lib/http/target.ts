import { parseAddress } from './client-address.ts';

/** A server to which many requests go, and the headers that all of them carry. */
export interface HttpTarget {
  /** Without user name and password, which the HTTP client refuses. */
  readonly url: URL;
  /** Headers of every request, with lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Turns the user name and password of a URL into basic authentication (RFC 7617).
 * @param headers further headers; `authorization` among them wins over the URL's credentials.
 * @throws Error that shows nothing of the URL.
 */
export function httpTarget(url: string, headers: Readonly<Record<string, string>> = {}): HttpTarget {
  const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  try {
    const target = new URL(url);
    const { username, password } = target;
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    target.username = '';
    target.password = '';
    const basic = { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` };
    return { url: target, headers: { ...(credentials === ':' ? {} : basic), ...Object.fromEntries(named) } };
  } catch {
    // The parser's own error contains the URL.
    throw new Error('the URL is not valid');
  }
}

/** Returns the fault of a host, with or without a port, in place of a URL; `undefined` for a URL and for an empty text. */
export function missingScheme(text: string, schemes = 'https:// or http://'): string | undefined {
  // In `localhost:8080` the host looks like a scheme.
  const isUrl = /^[a-z][\w+.-]*:/i.test(text) && !/^[\w.-]+:\d/.test(text);
  return isUrl || text === '' ? undefined : `has no scheme: write ${schemes} in front`;
}

/**
 * Checks whether the hostname of a URL always means this machine (RFC 6761, section 6.3; RFC 1122, section 3.2.1.3;
 * RFC 4291, section 2.5.3).
 */
export function isLoopback(hostname: string): boolean {
  const address = parseAddress(hostname.replace(/^\[|\]$/g, ''));
  if (address === undefined) return /(?:^|\.)localhost\.?$/.test(hostname);
  return address === '::1' || address.startsWith('127.');
}

/** Parses a URL; returns `undefined` if it is invalid. `URL.canParse` would have it parsed twice. */
export function urlIn(url: string | URL): URL | undefined {
  try {
    return new URL(url);
  } catch {
    return undefined;
  }
}

/** Checks whether others can read requests to a URL: it is plain HTTP to another machine. */
export function isReadableOnTheWay(text: string | undefined): boolean {
  const url = text === undefined ? undefined : urlIn(text);
  return url?.protocol === 'http:' && !isLoopback(url.hostname);
}
