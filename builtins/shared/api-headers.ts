import { checkHeaderName, error, type Finding, isHeaderValue, keys } from '../../plugins-sdk/config.ts';
import type { Endpoint } from '../../plugins-sdk/index.ts';

/** Returns an API's headers as they are sent; `basic` becomes a Basic credential (RFC 7617). */
export function apiHeaders(endpoint: Pick<Endpoint, 'block' | 'apiBlock'>): Readonly<Record<string, string>> {
  const texts = Object.entries(keys.headers.of(endpoint) ?? {}).map(([name, value]) => {
    if (typeof value === 'string') return [name, value];
    const { user, password } = value.basic;
    return [name, `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`];
  });
  return Object.fromEntries(texts);
}

/** Returns the faults of a header that cannot be sent. */
export function checkHeader(path: string, name: string, value: string): Finding[] {
  const unfit = isHeaderValue(value) ? [] : [error(path, 'holds a character that no header can carry')];
  return [...checkHeaderName(path, name), ...unfit];
}
