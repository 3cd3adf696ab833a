import { ethers } from '../../lib/process/packages.ts';
import { optionalKey } from '../../plugins-sdk/config.ts';
import {
  type AskedResponse,
  definePlugin,
  type Endpoint,
  type Exchange,
  type HttpResponse,
  Refusal,
  type Route,
  type Services,
  Type,
} from '../../plugins-sdk/index.ts';
import { encodeAnswer, type Lookup, lookupOf } from './codec.ts';
import { isFit, isOpen } from './endpoint.ts';
import { describedRoutes } from './openapi.ts';
import { NOT_KEPT, refusalBody, refusals } from './refusals.ts';

const ccipReadKey = optionalKey(
  'settings',
  'ccipRead',
  Type.Boolean({ description: 'Answers contracts at /ccip, by ERC-3668 (CCIP-Read); default false' }),
);

/** Most bytes of a body, the same as for a request to an endpoint. */
const BODY_LIMIT = 65_536;
/** Statuses that every gateway would repeat. Clients try the next gateway only after a 5xx, so other refusals become 503. */
const WRONG = new Set([400, 404, 413, 422]);

function responseTo({ status, headers: own, body }: AskedResponse): HttpResponse {
  const said = JSON.parse(body);
  const headers = { ...own, ...NOT_KEPT };
  if (status === 200) return { status, headers, body: JSON.stringify({ data: encodeAnswer(said) }) };
  return { status: statusOf(status), headers, body: JSON.stringify(refusalBody(String(said.error))) };
}

function statusOf(status: number): number {
  return status >= 500 || WRONG.has(status) ? status : 503;
}

/** Rewrites a refused admission with a body and a status that clients of gateways understand. */
function notAdmitted(error: unknown): never {
  if (!(error instanceof Refusal)) throw error;
  const { status, message, headers: own, reason, fault } = error;
  const headers = { ...own, ...NOT_KEPT };
  throw new Refusal(statusOf(status), message, { body: refusalBody(message), headers, reason, fault });
}

/** Makes the function that asks an endpoint like a client with neither a key nor a payment. */
function gateway({ endpoints, ask, admit }: Pick<Services, 'endpoints' | 'ask' | 'admit'>) {
  const known = new Map<string, Endpoint>(endpoints.map((endpoint) => [endpoint.id, endpoint]));
  return async (read: () => Lookup, exchange: Exchange): Promise<HttpResponse> => {
    try {
      const { endpointId, parameters } = read();
      const endpoint = known.get(endpointId);
      if (endpoint !== undefined && !isOpen(endpoint)) throw refusals.closed();
      if (endpoint !== undefined && !isFit(endpoint)) throw refusals.unfit();
      return responseTo(await ask(endpointId, parameters, { as: exchange }));
    } catch (error) {
      // A wrong question counts against the rate limit, too.
      if (error instanceof Refusal) await admit(exchange).catch(notAdmitted);
      throw error;
    }
  };
}

/** Reads the members of a body. @throws Refusal 400 */
function bodyOf(body: Uint8Array): readonly [sender: unknown, data: unknown] {
  try {
    const { sender, data } = Object(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)));
    return [sender, data];
  } catch {
    throw refusals.body();
  }
}

/** Answers contracts (ERC-3668, CCIP-Read). It is off unless `settings.ccipRead` is `true`. */
export const ccipRead = definePlugin({
  name: 'ccip-read',
  keys: [ccipReadKey],
  openapi: ({ config, endpoints }) => (ccipReadKey.in(config) === true ? { routes: describedRoutes(endpoints) } : {}),
  setup(services) {
    if (ccipReadKey.in(services.config) !== true) return {};
    const answer = gateway(services);
    const routes: readonly Route[] = [
      {
        method: 'GET',
        path: '/ccip/:sender/:data.json',
        admit: 'asked',
        handle: ({ params }, exchange) => answer(() => lookupOf(params.sender, params.data), exchange),
      },
      {
        method: 'POST',
        path: '/ccip',
        admit: 'asked',
        maxBody: BODY_LIMIT,
        handle: ({ body }, exchange) => answer(() => lookupOf(...bodyOf(body)), exchange),
      },
    ];
    // Loaded at the start: it takes a good part of a second, too long for a request.
    return { routes, start: () => void ethers() };
  },
});
