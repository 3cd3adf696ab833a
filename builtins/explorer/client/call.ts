import { jsonIn } from '../../../lib/json/value.ts';
import type { PublicEndpoint } from '../endpoint.ts';
import { quotient } from './human.ts';

/** What a form makes. */
export interface ServiceRequest {
  readonly endpointId: string;
  /** JSON. */
  readonly body: string;
  /** Credentials. */
  readonly headers: Readonly<Record<string, string>>;
}

/** How a request ended. */
export interface CallOutcome {
  /** Absent where nothing came. */
  readonly status?: number;
  readonly statusText: string;
  readonly milliseconds: number;
  readonly requestId?: string;
  /** The answer as JSON with line breaks; as it came where it is none; empty where there is none. */
  readonly text: string;
  /** The answer is an older one, since the upstream fails. */
  readonly isStale?: boolean;
  /** Why there is no signed answer, for a person. */
  readonly problem?: string;
}

/** Milliseconds between two looks at an async request. */
const FIRST_WAIT_MS = 150;
const LONGEST_WAIT_MS = 2000;
const GROWTH = 1.5;
/** Milliseconds to wait after a 429 that does not say how long, and at most. */
const DEFAULT_PAUSE_MS = 5000;
const LONGEST_PAUSE_MS = 60_000;

/** A path of the service: relative to the page, which a proxy may serve from some folder. */
export function serviceUrl(path: string): URL {
  return new URL(path.replace(/^\/+/, ''), `${location.origin}${location.pathname}`);
}

/** Asks the service and waits for the answer, however the endpoint delivers it. Never rejects. */
export async function ask(
  { endpointId, body, headers }: ServiceRequest,
  signal: AbortSignal,
  progress: (text: string) => void,
): Promise<CallOutcome> {
  const start = performance.now();
  let requestId: string | undefined;
  const took = () => Math.round(performance.now() - start);
  const ended = () => ({ milliseconds: took(), ...(requestId === undefined ? {} : { requestId }) });
  try {
    const response = await fetch(serviceUrl(`endpoints/${endpointId}`), {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body,
      signal,
      cache: 'no-store',
      redirect: 'error',
    });
    requestId = response.headers.get('X-Request-Id') ?? undefined;
    const first = await read(response);
    const pollUrl = response.status === 202 ? field(first.json, 'pollUrl') : undefined;
    const last = typeof pollUrl === 'string' ? await poll(serviceUrl(pollUrl), signal, progress) : first;
    return { ...last.outcome, ...ended() };
  } catch (error) {
    const problem = signal.aborted
      ? 'Stopped before an answer came.'
      : `The service cannot be reached: ${errorText(error)}`;
    return { statusText: signal.aborted ? 'Stopped' : 'No answer', text: '', problem, ...ended() };
  }
}

export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

interface Read {
  readonly json: unknown;
  readonly outcome: Omit<CallOutcome, 'milliseconds'>;
}

async function read(response: Response): Promise<Read> {
  const { status, statusText } = response;
  const body = await response.text();
  const isStream = response.headers.get('Content-Type')?.startsWith('text/event-stream') === true;
  const json = jsonIn(isStream ? eventData(body) : body);
  const text = json === undefined ? body : JSON.stringify(json, null, 2);
  const problem = problemOf(response, json);
  const isStale = response.headers.get('Cache-Status')?.includes('stale-if-error') === true;
  return { json, outcome: { status, statusText, text, isStale, ...(problem === undefined ? {} : { problem }) } };
}

/** The data of the only event of a stream (HTML standard, section 9.2.6). */
function eventData(stream: string): string {
  return stream
    .split(/\r\n|\n|\r/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice('data:'.length).replace(/^ /, ''))
    .join('\n');
}

function field(json: unknown, name: string): unknown {
  return typeof json === 'object' && json !== null && Object.hasOwn(json, name) ? Reflect.get(json, name) : undefined;
}

function problemOf({ status, ok, headers }: Response, json: unknown): string | undefined {
  const error = field(json, 'error');
  if (ok && error === undefined) return json === undefined ? 'The answer is no JSON.' : undefined;
  if (status === 402) {
    // In offers to wallets the error is there for machines, even before anything was paid.
    const why = typeof error === 'string' && field(json, 'accepts') === undefined ? `${error}. ` : '';
    return `${why}This endpoint asks for a payment${priceOf(json)}. Its terms:`;
  }
  const retryAfter = status === 429 || status === 503 ? headers.get('Retry-After') : null;
  const said = typeof error === 'string' ? error : 'The service answered with an error.';
  return retryAfter === null ? said : `${said}. Try again in ${retryAfter} s.`;
}

type Price = NonNullable<PublicEndpoint['prices']>[number];

/** What a chain's own coin has of its smallest unit. */
const COIN = '1e18';

/** What is asked for, with its unit; nothing where the terms do not say. Of several offers it is the first. */
function priceOf(terms: unknown): string {
  const offers = field(terms, 'accepts');
  const offer: unknown = Array.isArray(offers) ? offers[0] : terms;
  const amount = field(offer, 'amount');
  const token = field(offer, 'token') ?? field(offer, 'asset');
  const chain = field(offer, 'network');
  if (typeof amount !== 'string' || !/^\d+$/.test(amount) || typeof token !== 'string') return '';
  return ` of ${priceText({ amount, token, network: String(chain) })}`;
}

/** An amount with its unit. */
export function priceText({ amount, max, token, network }: Price): string {
  const range = max === undefined ? amount : `${amount} to ${max}`;
  if (!/^0x0{40}$/.test(token)) return `${range} in the smallest unit of the token ${token} on chain ${network}`;
  const coins = [amount, max].flatMap((one) => (one === undefined ? [] : quotient(one, COIN)));
  return `${range} wei, ${coins.join(' to ')} of the native coin of chain ${network}`;
}

async function poll(url: URL, signal: AbortSignal, progress: (text: string) => void): Promise<Read> {
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * GROWTH, LONGEST_WAIT_MS)) {
    await pause(wait, signal);
    const response = await fetch(url, { signal, cache: 'no-store', redirect: 'error' });
    const record = await read(response);
    if (response.status === 429) {
      progress('Asked too often; waiting');
      const seconds = Number(response.headers.get('Retry-After'));
      await pause(seconds > 0 ? Math.min(seconds * 1000, LONGEST_PAUSE_MS) : DEFAULT_PAUSE_MS, signal);
      continue;
    }
    const status = field(record.json, 'status');
    if (!response.ok || (status !== 'pending' && status !== 'processing')) return record;
    progress(status === 'pending' ? 'Accepted; not begun yet' : 'Accepted; in progress');
  }
}

/** @throws the signal's reason */
function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, milliseconds);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
}
