import { hash, timingSafeEqual } from 'node:crypto';
import { isLoopback } from '../../lib/http/target.ts';
import { MAX_JSON_DEPTH } from '../../lib/json/canonical-json.ts';
import { isDeeperThan } from '../../lib/json/skip.ts';
import {
  type Exchange,
  type HttpResponse,
  type Json,
  type Parameters,
  Refusal,
  type Route,
  type Services,
  withoutRoundedNumbers,
} from '../../plugins-sdk/index.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';

/** Bytes of a body, as of a request to an endpoint. */
const BODY_LIMIT = 65_536;

function refusal(status: number, message: string, headers = {}): () => Refusal {
  return () => new Refusal(status, message, { headers });
}

const refusals = {
  remote: refusal(403, 'Operator mode answers on its own machine only, and through no proxy'),
  page: refusal(403, 'Operator mode answers its own page only: open it at 127.0.0.1 or localhost'),
  token: refusal(401, 'Invalid operator token: settings.explorer.operatorToken has the right one'),
  media: refusal(415, 'Content-Type must be application/json'),
  body: refusal(400, 'Request body must be {"endpointId": "0x…", "parameters": {…}}'),
  unknown: refusal(404, 'Endpoint not found'),
  busy: refusal(503, 'Another trial is under way', { 'Retry-After': '1' }),
};

/** What proxies add. One that adds nothing still has no token. */
const FORWARDED =
  /^(?:forwarded|via|x-(?:forwarded|original|envoy)-.+|x-(?:real|client)-ip|cf-connecting-ip|true-client-ip)$/;

/** Whether a request comes from this machine by itself. */
function isDirect({ socketAddress, headers }: Exchange): boolean {
  return isLoopback(socketAddress) && !Object.keys(headers).some((name) => FORWARDED.test(name));
}

/** Whether it went to a name, too, that no other site can have (DNS rebinding). */
export function isLocal(exchange: Exchange): boolean {
  return isDirect(exchange) && isLoopback(hostOf(exchange.headers.host));
}

function hostOf(host = ''): string {
  return /^(\[[\da-f:.]+\]|[\w.-]+)(?::\d+)?$/i.exec(host)?.[1] ?? '';
}

/** Lets the operator in, by a program or by the page as this machine shows it. @throws Refusal */
function letIn(exchange: Exchange, isToken: (given: string) => boolean): void {
  const { headers } = exchange;
  if (!isDirect(exchange)) throw refusals.remote();
  const { host, origin = `http://${host}`, 'sec-fetch-site': site = 'same-origin' } = headers;
  if (!isLocal(exchange) || origin !== `http://${host}` || site !== 'same-origin') throw refusals.page();
  // Other sites cannot send it without asking first.
  if (!/^application\/json(?:\s*;|$)/i.test(headers['content-type'] ?? '')) throw refusals.media();
  if (!isToken(headers['x-operator-token'] ?? '')) throw refusals.token();
}

interface Asked {
  readonly endpointId: string;
  readonly parameters: Parameters;
}

/** @throws Refusal */
function askedIn(body: Uint8Array): Asked {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    const { endpointId, parameters } = Object(
      isDeeperThan(text, MAX_JSON_DEPTH) ? undefined : JSON.parse(withoutRoundedNumbers(text)),
    );
    if (typeof endpointId === 'string' && isRecord(parameters))
      return { endpointId: endpointId.toLowerCase(), parameters: parameters as Record<string, Json> };
  } catch {
    // It is no JSON.
  }
  throw refusals.body();
}

/** `POST /explorer/try`: what the upstream of an endpoint answers, and what could be signed of it. For the operator alone. */
export function operatorRoute(
  token: string,
  { endpoints, tryEndpoint }: Pick<Services, 'endpoints' | 'tryEndpoint'>,
): Route {
  const digest = (text: string) => hash('sha256', text, 'buffer');
  const expected = digest(token);
  let isBusy = false;
  const answer = async ({ endpointId, parameters }: Asked): Promise<HttpResponse> => {
    const endpoint = endpoints.find(({ id }) => id === endpointId);
    if (endpoint === undefined) throw refusals.unknown();
    if (isBusy) throw refusals.busy();
    isBusy = true;
    try {
      const trial = await tryEndpoint(`${endpoint.api}/${endpoint.name}`, parameters);
      return { status: 200, headers: { 'Cache-Control': 'no-store' }, body: JSON.stringify(trial) };
    } catch (error) {
      throw refusal(422, error instanceof Error ? error.message : String(error))();
    } finally {
      isBusy = false;
    }
  };
  return {
    ...{ method: 'POST', path: '/explorer/try', admit: true, maxBody: BODY_LIMIT },
    handle: ({ body }, exchange) => {
      letIn(exchange, (given) => timingSafeEqual(digest(given), expected));
      return answer(askedIn(body));
    },
  };
}
