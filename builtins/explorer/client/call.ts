import { isRecord, jsonIn } from '../../../lib/json/value.ts';
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
  readonly requestId?: string | undefined;
  /** The answer as JSON with line breaks; as it came where it is none; empty where there is none. */
  readonly text: string;
  /** The answer is an older one, since the upstream fails. */
  readonly isStale?: boolean;
  /** Why there is no signed answer, for a person. */
  readonly problem?: string | undefined;
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
  { endpointId, body, headers: credentials }: ServiceRequest,
  signal: AbortSignal,
  progress: (text: string) => void,
): Promise<CallOutcome> {
  const start = performance.now();
  let requestId: string | undefined;
  const ended = () => ({ milliseconds: Math.round(performance.now() - start), requestId });
  try {
    const headers = { 'Content-Type': 'application/json', ...credentials };
    const options = { ...OPTIONS, method: 'POST', headers, body, signal };
    const response = await fetch(serviceUrl(`endpoints/${endpointId}`), options);
    requestId = response.headers.get('X-Request-Id') ?? undefined;
    const first = await read(response);
    const { pollUrl } = first.json;
    const isAsync = response.status === 202 && typeof pollUrl === 'string';
    const last = isAsync ? await poll(serviceUrl(pollUrl), signal, progress) : first;
    return { ...last.outcome, ...ended() };
  } catch (error) {
    const said = signal.aborted
      ? { statusText: 'Stopped', problem: 'Stopped before an answer came.' }
      : { statusText: 'No answer', problem: `The service cannot be reached: ${errorText(error)}` };
    return { ...said, text: '', ...ended() };
  }
}

const OPTIONS = { cache: 'no-store', redirect: 'error' } as const;

export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

type Members = Readonly<Record<string, unknown>>;

interface Read {
  /** The members of the answer; none where it is no object. */
  readonly json: Members;
  readonly outcome: Omit<CallOutcome, 'milliseconds'>;
}

async function read(response: Response): Promise<Read> {
  const { status, statusText, headers } = response;
  const body = await response.text();
  const isStream = headers.get('Content-Type')?.startsWith('text/event-stream') === true;
  const answer = jsonIn(isStream ? eventData(body) : body);
  const json = isRecord(answer) ? answer : {};
  const text = answer === undefined ? body : JSON.stringify(answer, null, 2);
  const problem = answer === undefined && response.ok ? 'The answer is no JSON.' : problemOf(response, json);
  const isStale = headers.get('Cache-Status')?.includes('stale-if-error') === true;
  return { json, outcome: { status, statusText, text, isStale, problem } };
}

/** The data of the only event of a stream (HTML standard, section 9.2.6). */
function eventData(stream: string): string {
  const lines = stream.split(/\r\n|\n|\r/).filter((line) => line.startsWith('data:'));
  return lines.map((line) => line.replace(/^data: ?/, '')).join('\n');
}

function problemOf({ status, ok, headers }: Response, { error, accepts, ...terms }: Members): string | undefined {
  if (ok && error === undefined) return undefined;
  if (status === 402) {
    // In offers to wallets the error is there for machines, even before anything was paid.
    const why = typeof error === 'string' && accepts === undefined ? `${error}. ` : '';
    const offer: unknown = Array.isArray(accepts) ? accepts[0] : terms;
    return `${why}This endpoint asks for a payment${isRecord(offer) ? priceOf(offer) : ''}. Its terms:`;
  }
  const retryAfter = status === 429 || status === 503 ? headers.get('Retry-After') : null;
  const said = typeof error === 'string' ? error : 'The service answered with an error.';
  return retryAfter === null ? said : `${said}. Try again in ${retryAfter} s.`;
}

/** What is asked for, with its unit; nothing where the terms do not say. */
function priceOf({ amount, asset, token = asset, network }: Members): string {
  if (typeof amount !== 'string' || !/^\d+$/.test(amount) || typeof token !== 'string') return '';
  return ` of ${priceText({ amount, token, network: String(network) })}`;
}

/** What a chain's own coin has of its smallest unit. */
const COIN = '1e18';

/** An amount with its unit. */
export function priceText({ amount, max, token, network }: NonNullable<PublicEndpoint['prices']>[number]): string {
  const amounts = max === undefined ? [amount] : [amount, max];
  const range = amounts.join(' to ');
  if (!/^0x0{40}$/.test(token)) return `${range} in the smallest unit of the token ${token} on chain ${network}`;
  return `${range} wei, ${amounts.map((one) => quotient(one, COIN)).join(' to ')} of the native coin of chain ${network}`;
}

async function poll(url: URL, signal: AbortSignal, progress: (text: string) => void): Promise<Read> {
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * GROWTH, LONGEST_WAIT_MS)) {
    await pause(wait, signal);
    const response = await fetch(url, { ...OPTIONS, signal });
    const record = await read(response);
    const { status } = record.json;
    if (response.status === 429) {
      progress('Asked too often; waiting');
      const seconds = Number(response.headers.get('Retry-After'));
      await pause(seconds > 0 ? Math.min(seconds * 1000, LONGEST_PAUSE_MS) : DEFAULT_PAUSE_MS, signal);
    } else if (!response.ok || (status !== 'pending' && status !== 'processing')) return record;
    else progress(status === 'pending' ? 'Accepted; not begun yet' : 'Accepted; in progress');
  }
}

/** @throws the signal's reason */
function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
