import { parseAddress } from './client-address.ts';

/** A server that is asked again and again. */
export interface HttpTarget {
  /** Without user name and password, which the HTTP client refuses. */
  readonly url: URL;
  /** For every request, with lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Turns the user name and password of a URL into basic authentication (RFC 7617).
 * @param headers sent too; one called `authorization` wins over what the URL says.
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
    // The error of the parser has the URL in it.
    throw new Error('the URL is not valid');
  }
}

/** What to write in front of a host, with or without a port, that stands where a URL belongs; nothing for a URL. */
export function missingScheme(text: string, schemes = 'https:// or http://'): string | undefined {
  // What stands before a port is a host, though it looks like a scheme.
  const isUrl = /^[a-z][\w+.-]*:/i.test(text) && !/^[\w.-]+:\d/.test(text);
  return isUrl || text === '' ? undefined : `has no scheme: write ${schemes} in front`;
}

/**
 * Whether a host, as a URL names it, is always this machine (RFC 6761, section 6.3; RFC 1122, section 3.2.1.3; RFC 4291,
 * section 2.5.3).
 */
export function isLoopback(hostname: string): boolean {
  const address = parseAddress(hostname.replace(/^\[|\]$/g, ''));
  if (address === undefined) return /(?:^|\.)localhost\.?$/.test(hostname);
  return address === '::1' || address.startsWith('127.');
}

/** A URL, if it is one: read once, where `URL.canParse` would read it a second time. */
export function urlOf(url: string | URL): URL | undefined {
  try {
    return new URL(url);
  } catch {
    return undefined;
  }
}

/** Whether others can read what is sent to a URL: over plain HTTP, and beyond this machine. */
export function isReadableOnTheWay(text: string | undefined): boolean {
  const url = text === undefined ? undefined : urlOf(text);
  return url?.protocol === 'http:' && !isLoopback(url.hostname);
}
