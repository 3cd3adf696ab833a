import { isRecord, jsonIn } from '../../../lib/json/value.ts';
import { errorText } from '../../../lib/text.ts';
import type { PublicEndpoint } from '../endpoint.ts';
import { quotient } from './human.ts';
import type { Asked } from './request.ts';

/** The result of a request; its problem explains to a person why there is no signed answer. */
export type CallOutcome = Awaited<ReturnType<typeof ask>>;

/** Milliseconds between two polls of an async request: the first, the longest, and the factor between them. */
const FIRST_WAIT_MS = 150;
const LONGEST_WAIT_MS = 2000;
const GROWTH = 1.5;
/** Milliseconds to wait after a 429 without `Retry-After`, and the longest wait after any. */
const DEFAULT_PAUSE_MS = 5000;
const LONGEST_PAUSE_MS = 60_000;

/** Returns the URL of a path of the service. It is relative to the page, which a proxy may serve from a folder. */
export function serviceUrl(path: string): URL {
  return new URL(path.replace(/^\/+/, ''), `${location.origin}${location.pathname}`);
}

/** Sends a request and waits for the answer, in any mode. Never rejects. */
export async function ask(
  { endpointId, body, headers: credentials }: Asked,
  signal: AbortSignal,
  progress: (text: string) => void,
) {
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
    return { ...said, status: undefined, text: '', isStale: false, ...ended() };
  }
}

const OPTIONS = { cache: 'no-store', redirect: 'error' } as const;

type Members = Readonly<Record<string, unknown>>;

/** Returns an outcome, with the answer as indented JSON if it is JSON, and the members of the answer; none if it is no object. */
async function read(response: Response) {
  const { status, statusText, headers } = response;
  const body = await response.text();
  // A stream has one event, of one line.
  const answer = jsonIn(body.replace(/^data: /, ''));
  const json: Members = isRecord(answer) ? answer : {};
  const text = answer === undefined ? body : JSON.stringify(answer, null, 2);
  const problem = answer === undefined && response.ok ? 'The answer is no JSON.' : problemOf(response, json);
  const isStale = headers.get('Cache-Status')?.includes('stale-if-error') === true;
  return { json, outcome: { status, statusText, text, isStale, problem } };
}

function problemOf({ status, ok, headers }: Response, { error, accepts, ...terms }: Members): string | undefined {
  if (ok && error === undefined) return undefined;
  if (status === 402) {
    // Offers to wallets always have an error, meant for machines, even before any payment.
    const why = typeof error === 'string' && accepts === undefined ? `${error}. ` : '';
    const offer: unknown = Array.isArray(accepts) ? accepts[0] : terms;
    return `${why}This endpoint asks for a payment${isRecord(offer) ? priceOf(offer) : ''}. Its terms:`;
  }
  const retryAfter = status === 429 || status === 503 ? headers.get('Retry-After') : null;
  const said = typeof error === 'string' ? error : 'The service answered with an error.';
  return retryAfter === null ? said : `${said}. Try again in ${retryAfter} s.`;
}

/** Returns the price in a payment's terms, with its unit; `''` if the terms have none. */
function priceOf({ amount, asset, token = asset, network }: Members): string {
  if (typeof amount !== 'string' || !/^\d+$/.test(amount) || typeof token !== 'string') return '';
  return ` of ${priceText({ amount, token, network: String(network) })}`;
}

/** The number of smallest units in a chain's native coin. */
const COIN = '1e18';

/** Returns a price with its unit. */
export function priceText({ amount, max, token, network }: NonNullable<PublicEndpoint['prices']>[number]): string {
  const amounts = max === undefined ? [amount] : [amount, max];
  const range = amounts.join(' to ');
  if (!/^0x0{40}$/.test(token)) return `${range} in the smallest unit of the token ${token} on chain ${network}`;
  return `${range} wei, ${amounts.map((one) => quotient(one, COIN)).join(' to ')} of the native coin of chain ${network}`;
}

async function poll(url: URL, signal: AbortSignal, progress: (text: string) => void) {
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

/** Waits. @throws the signal's reason */
function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
