import { fieldOf } from './answer.ts';
import { AskError, wrongOption } from './ask-error.ts';

/** Several times what the service answers with: it takes 1 MiB from its upstream, of which hex makes twice as much. */
const MAX_BYTES = 4 * 1024 * 1024;
/** Of what an operator says for a person. */
const MAX_SAID = 200;

export interface AnswerRequest {
  /** The base of the service. */
  readonly url: string;
  readonly endpointId: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly key?: string | undefined;
  readonly fetch: typeof fetch;
}

/** @throws AskError where the base of a service cannot be asked. */
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
 * Asks one operator, once, and reads at most {@link MAX_BYTES} of what it says.
 * @returns the parsed body of a response that is no failure.
 * @throws AskError, and what the signal says.
 */
export async function fetchAnswer(request: AnswerRequest, signal: AbortSignal): Promise<unknown> {
  const { url, endpointId, parameters, key, fetch } = request;
  const response = await fetch(endpointUrl(url, endpointId), {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...(key !== undefined && { 'X-Api-Key': key }) },
    body: JSON.stringify({ parameters }),
    // `error` is unknown to some runtimes; what is not followed is looked at here.
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
      // Whether the other side hears of it is no matter of ours.
      reader.cancel().catch(() => undefined);
      throw new AskError('too-large', `the response has more than ${MAX_BYTES} bytes`);
    }
    text += decoder.decode(value, { stream: true });
  }
}
