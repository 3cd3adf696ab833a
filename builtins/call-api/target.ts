import { DEFAULT_TIMEOUT, type Endpoint, keys, type RequestParts } from '../../plugins-sdk/index.ts';

/** What of an upstream request is the same for all clients. */
export interface Target {
  readonly base: string;
  readonly method: string;
  readonly timeout: number;
  headersOf(parts: RequestParts): Headers;
}

type Headers = Readonly<Record<string, string>>;

export function baseUrl(endpoint: Pick<Endpoint, 'own' | 'shared'>): string {
  return (keys.url.of(endpoint) ?? '').replace(/\/$/, '');
}

export function prepare(endpoint: Endpoint): Target {
  const headers = keys.headers.of(endpoint) ?? {};
  const path = keys.path.of(endpoint) ?? '';
  return {
    base: baseUrl(endpoint) + (/^([/?]|$)/.test(path) ? '' : '/'),
    method: keys.method.of(endpoint) ?? 'GET',
    timeout: keys.timeout.of(endpoint) ?? DEFAULT_TIMEOUT,
    headersOf: compileHeaders({ headers, named: new Set(Object.keys(headers).map((name) => name.toLowerCase())) }),
  };
}

interface OwnHeaders {
  /** Names as configured, which win over a parameter's. */
  readonly headers: Headers;
  /** The same in lower case. */
  readonly named: ReadonlySet<string>;
}

function headersOf({ headers, named }: OwnHeaders, parts: Pick<RequestParts, 'headers' | 'cookie' | 'body'>): Headers {
  const merged: [string, string][] = [];
  const seen = new Set(named);
  const add = (name: string, value: string) => {
    if (seen.has(name.toLowerCase())) return;
    seen.add(name.toLowerCase());
    merged.push([name, value]);
  };
  for (const [name, value] of Object.entries(parts.headers)) add(name, value);
  if (parts.cookie !== undefined) add('cookie', parts.cookie);
  if (parts.body !== undefined) add('content-type', 'application/json');
  add('accept', 'application/json');
  add('user-agent', 'signed-data-proxy');
  return Object.freeze(Object.fromEntries([...merged, ...Object.entries(headers)]));
}

/** Most requests have no headers or cookies from parameters, and share one object. */
function compileHeaders(own: OwnHeaders): (parts: RequestParts) => Headers {
  const none = { headers: {}, cookie: undefined };
  const bare = headersOf(own, { ...none, body: undefined });
  const withBody = headersOf(own, { ...none, body: '' });
  return (parts) => {
    if (parts.cookie !== undefined || Object.keys(parts.headers).length > 0) return headersOf(own, parts);
    return parts.body === undefined ? bare : withBody;
  };
}

export function urlOf({ base }: Target, { path, query }: RequestParts): string {
  if (query === '') return base + path;
  return `${base}${path}${path.includes('?') ? '&' : '?'}${query}`;
}
