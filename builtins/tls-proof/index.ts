import {
  AddressSchema,
  type CheckContext,
  checkAddress,
  closedObject,
  declaredParameters,
  type EndpointDraft,
  error,
  type Finding,
  keys,
  millisecondsSchema,
  optionalKey,
  warning,
} from '../../plugins-sdk/config.ts';
import {
  createHttpClient,
  definePlugin,
  type Endpoint,
  perEndpoint,
  type Services,
  type Taps,
  Type,
} from '../../plugins-sdk/index.ts';
import { checkUrl } from '../shared/check-url.ts';
import { type ClaimedRequest, checkProof, NoProof } from './claim.ts';
import { askGateway, type Gateway, type GatewayRequest } from './gateway.ts';
import { openApiPart } from './openapi.ts';

const matchesKey = optionalKey(
  'endpoint',
  'responseMatches',
  Type.Array(
    closedObject({
      type: Type.Literal('regex', { description: 'The only kind' }),
      value: Type.String({ minLength: 1, description: 'Regular expression, perhaps with named groups' }),
    }),
    { description: 'Patterns that an attestor must find in the answer; without them, no proof' },
  ),
);
const proofKey = optionalKey(
  'settings',
  'proof',
  Type.Union(
    [
      Type.Literal('none'),
      closedObject({
        type: Type.Literal('reclaim', { description: 'The only kind' }),
        gatewayUrl: Type.String({ pattern: '^https?://', description: 'URL of the gateway, http or https' }),
        timeout: Type.Optional(millisecondsSchema('Time limit of a proof; default 30s')),
        attestors: Type.Optional(
          Type.Array(AddressSchema, { minItems: 1, description: 'Who may attest; without it anyone' }),
        ),
      }),
    ],
    { description: 'TLS proofs of upstream answers; default none' },
  ),
);

function proofIn(config: CheckContext['config']) {
  const proof = proofKey.in(config);
  return proof === 'none' ? undefined : proof;
}

const DEFAULT_TIMEOUT_MS = 30_000;
/** Milliseconds that the budget has beyond the timeout of the call. */
const MARGIN_MS = 1000;

function isRegExp(text: string): boolean {
  try {
    return new RegExp(text) instanceof RegExp;
  } catch {
    return false;
  }
}

const NO_ATTESTORS = 'has no attestors: a proof is taken whoever attests it; list the addresses that you trust';
const SHOWS_VALUE = 'shows gateway and attestor the value that encrypt hides, and clients what a named group matches';
const NO_PATTERN = 'is no regular expression of JavaScript: make sure that the attestor reads it';

/** Places of parameters that clients can read in a claim, which shows the URL and the body. */
const SHOWN = new Set(['query', 'path', 'body']);

function* checkEndpoint(endpoint: EndpointDraft, context: CheckContext, proofs: boolean): Iterable<Finding> {
  const matches = matchesKey.of(endpoint) ?? [];
  if (matches.length === 0) return;
  const at = `${endpoint.path}.responseMatches`;
  for (const [i, { value }] of matches.entries()) if (!isRegExp(value)) yield warning(`${at}[${i}].value`, NO_PATTERN);
  for (const { name, in: place, secret } of declaredParameters(endpoint, context)) {
    if (!secret || !SHOWN.has(place)) continue;
    if (proofs) yield error(at, `the proof would show the secret parameter "${name}"`);
    else yield warning(at, `with settings.proof the proof would show the secret parameter "${name}"`);
  }
  if (!isProvable(endpoint)) yield warning(at, 'has no effect with the method DELETE');
  if (proofs && endpoint.block.encrypt !== undefined) yield warning(at, SHOWS_VALUE);
}

const PROOFS = 'read what is asked, and answer with proofs of their own';

function* check(context: CheckContext): Iterable<Finding> {
  const proof = proofIn(context.config);
  if (proof !== undefined) yield* checkUrl('settings.proof.gatewayUrl', proof.gatewayUrl, PROOFS);
  if (proof !== undefined && !proof.attestors) yield warning('settings.proof', NO_ATTESTORS);
  for (const [i, address] of (proof?.attestors ?? []).entries())
    yield* checkAddress(`settings.proof.attestors[${i}]`, address);
  for (const endpoint of context.endpoints) yield* checkEndpoint(endpoint, context, proof !== undefined);
}

/** Whether gateways accept an endpoint's method: all but DELETE. */
function isProvable(endpoint: Pick<Endpoint, 'block' | 'apiBlock'>): boolean {
  return keys.method.of(endpoint) !== 'DELETE';
}

/**
 * Whether a claim about a request may be about another one. Attestors see a `*` in place of each byte that the gateway hides
 * from them. They read `{{name}}` as a run of those, in the path also percent-encoded.
 */
function isAmbiguous({ url, body }: ClaimedRequest): boolean {
  return /\*|(\{|%7b){2}/i.test(url) || /\*|\{\{/.test(body);
}

function proving(services: Services, gateway: Gateway, trusted?: readonly string[]): NonNullable<Taps['attest']> {
  const { endpoints, log, now, meters } = services;
  const attestors = trusted && new Set(trusted.map((address) => address.toLowerCase()));
  const patternsOf = perEndpoint(endpoints, (endpoint) => (isProvable(endpoint) && matchesKey.of(endpoint)) || []);
  const counted = meters.counter({
    name: 'tls_proofs_total',
    help: 'TLS proofs that were asked for: attached, failed, or abandoned by the client',
    labels: ['outcome'],
    initial: ['attached', 'failed', 'abandoned'].map((outcome) => ({ outcome })),
  });
  const prove = async (asked: GatewayRequest, signal: AbortSignal) => {
    const { headers: _, ...request } = asked;
    if (isAmbiguous(request)) throw new NoProof('the request holds * or {{, which no claim can vouch for');
    const answer = await askGateway(gateway, asked, signal);
    const proof = checkProof(answer, { request, attestors, now: now() });
    counted({ outcome: 'attached' }, 1);
    return proof;
  };
  return ({ url, method, headers, body = '' }, exchange, { signal }) => {
    const { endpoint, requestId } = exchange;
    const responseMatches = patternsOf(endpoint);
    if (responseMatches.length === 0) return undefined;
    // The URL as the HTTP client wrote it into the request line.
    const asked = { url: new URL(url).href, method, headers, body, responseMatches };
    return prove(asked, signal).catch((failure: unknown) => {
      // If the client has left, nobody needs the proof.
      const [outcome, level] = exchange.abandoned ? (['abandoned', 'debug'] as const) : (['failed', 'warn'] as const);
      counted({ outcome }, 1);
      if (!(failure instanceof NoProof)) throw failure;
      log[level]('no TLS proof', { requestId, endpointId: endpoint.id, detail: failure.message });
      return undefined;
    });
  };
}

/**
 * Adds a third party's proof of the upstream's answer. It asks a Reclaim gateway to repeat the request, checks the claim that an
 * attestor signed about it, and attaches the claim. If anything fails, the answer goes out without a proof.
 */
export const tlsProof = definePlugin({
  name: 'tls-proof',
  // The one call has the configured timeout, and ends before the budget does.
  budget: (config) => (proofIn(config)?.timeout ?? DEFAULT_TIMEOUT_MS) + MARGIN_MS,
  keys: [matchesKey, proofKey],
  check: (context) => [...check(context)],
  openapi: () => openApiPart,
  setup(services) {
    const proof = proofIn(services.config);
    if (proof === undefined) return {};
    const { gatewayUrl: url, timeout = DEFAULT_TIMEOUT_MS, attestors } = proof;
    const client = createHttpClient();
    return { stop: () => client.close(), hooks: { attest: proving(services, { client, url, timeout }, attestors) } };
  },
});
