import autocannon from 'autocannon';

export const CONNECTIONS = 32;

const request = {
  method: 'POST',
  headers: { 'content-type': 'application/json', 'x-api-key': 'benchmark-key-of-16' },
  body: '{"parameters":{"symbol":"ETHUSD"}}',
} as const;

/** One turn at one URL; latencies in milliseconds. */
export interface Turn {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly requests: number;
}

export type Headers = Readonly<Record<string, string>>;

/** @param headers of the next request, where each has its own. @throws Error when an answer was not 2xx: a fast refusal is no result. */
export async function load(
  url: string,
  amount: { readonly duration: number } | { readonly amount: number },
  headers?: () => Headers,
): Promise<Turn> {
  const setupRequest = (given: autocannon.Request) => ({ ...given, headers: { ...given.headers, ...headers?.() } });
  const each = headers === undefined ? {} : { requests: [{ setupRequest }] };
  const result = await autocannon({ ...request, url, connections: CONNECTIONS, ...each, ...amount });
  if (result.non2xx > 0 || result.errors > 0) {
    throw new Error(`${result.non2xx} refusals and ${result.errors} errors at ${url}`);
  }
  const { requests, latency } = result;
  return { perSecond: requests.average, p50: latency.p50, p99: latency.p99, requests: requests.total };
}

/** One answer, parsed. */
export async function once(url: string, headers?: () => Headers): Promise<unknown> {
  const response = await fetch(url, { ...request, headers: { ...request.headers, ...headers?.() } });
  if (!response.ok) throw new Error(`status ${response.status} at ${url}`);
  return response.json();
}
