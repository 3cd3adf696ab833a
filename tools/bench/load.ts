import autocannon from 'autocannon';

const CONNECTIONS = 32;
/** How often autocannon looks whether all requests are answered. */
const SAMPLE_MS = 10;

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

export interface Load {
  readonly url: string;
  readonly requests: number;
  readonly connections?: number;
  /** Headers of the next request, where each has its own. */
  readonly headers?: (() => Headers) | undefined;
}

/**
 * A fixed number of requests: none is under way when it ends, as those would count for nobody.
 * @throws Error when an answer was not 2xx: a fast refusal is no result.
 */
export async function load({ url, requests, connections = CONNECTIONS, headers }: Load): Promise<Turn> {
  const setupRequest = (given: autocannon.Request) => ({ ...given, headers: { ...given.headers, ...headers?.() } });
  const each = headers === undefined ? {} : { requests: [{ setupRequest }] };
  const amount = Math.max(requests, connections);
  const began = performance.now();
  const result = await autocannon({ ...request, url, connections, ...each, amount, sampleInt: SAMPLE_MS, timeout: 60 });
  const seconds = (performance.now() - began) / 1000;
  if (result.non2xx > 0 || result.errors > 0) {
    const answered = JSON.stringify(result.statusCodeStats);
    throw new Error(`${result.errors} errors, and answers by status: ${answered} at ${url}`);
  }
  return { perSecond: amount / seconds, p50: result.latency.p50, p99: result.latency.p99, requests: amount };
}

/** One answer, parsed. */
export async function once(url: string, headers?: () => Headers): Promise<unknown> {
  const response = await fetch(url, { ...request, headers: { ...request.headers, ...headers?.() } });
  if (!response.ok) throw new Error(`status ${response.status} at ${url}`);
  return response.json();
}
