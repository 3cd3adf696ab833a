import { fieldOf } from './answer.ts';
import { AskError, wrongOption } from './ask-error.ts';

/** Several times the largest answer of the service, which takes 1 MiB from its upstream; hex doubles that. */
const MAX_BYTES = 4 * 1024 * 1024;
/** Most characters of an operator's error text that are shown. */
const MAX_SAID = 200;

/** A request for one answer. */
export interface AnswerRequest {
  /** The base of the service. */
  readonly url: string;
  readonly endpointId: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly key?: string | undefined;
  readonly fetch: typeof fetch;
}

/** Returns the URL of an endpoint. @throws AskError if the base is no URL of a service. */
export function endpointUrl(base: string, endpointId: string): string {
  const url = urlOf(base);
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw wrongOption('url must be the base of a service, with http or https and without a password');
  return `${url.origin}${url.pathname.replace(/\/*$/, '')}/endpoints/${endpointId}`;
}

function urlOf(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/**
 * Asks one operator, once, and reads at most {@link MAX_BYTES} of the response.
 * @returns the parsed body of a successful response.
 * @throws AskError, and the reason of the signal.
 */
export async function fetchAnswer(request: AnswerRequest, signal: AbortSignal): Promise<unknown> {
  const { url, endpointId, parameters, key, fetch } = request;
  const response = await fetch(endpointUrl(url, endpointId), {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...(key !== undefined && { 'X-Api-Key': key }) },
    body: JSON.stringify({ parameters }),
    // Some runtimes do not know `error`. A redirect is not followed, and refused below.
    redirect: 'manual',
    signal,
  });
  const { status, type, redirected } = response;
  if (redirected || type === 'opaqueredirect' || (status >= 300 && status < 400))
    throw new AskError('redirect', 'the operator redirects elsewhere: give as url the address where it answers');
  const text = await boundedText(response);
  const json = parsed(text);
  if (!response.ok) throw new AskError('status', `the operator answered ${status}${said(json)}`);
  if (json === undefined) throw new AskError('malformed', 'the response is no JSON');
  return json;
}

function said(json: unknown): string {
  const error = fieldOf(json, 'error');
  return typeof error === 'string' ? `: ${error.slice(0, MAX_SAID)}` : '';
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function boundedText({ body }: Response): Promise<string> {
  if (body === null) return '';
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    size += value.length;
    if (size > MAX_BYTES) {
      // It does not matter whether the cancellation reaches the other side.
      reader.cancel().catch(() => undefined);
      throw new AskError('too-large', `the response has more than ${MAX_BYTES} bytes`);
    }
    text += decoder.decode(value, { stream: true });
  }
}
