import { isLoopback, isReadableOnTheWay, missingScheme } from '../../lib/http/target.ts';
import { LATE, withTimeout } from '../../lib/time.ts';
import {
  apiPath,
  baseUrl,
  type CheckContext,
  declaredParameters,
  type EndpointDraft,
  error,
  type Finding,
  keys,
  optionalKey,
  warning,
} from '../../plugins-sdk/config.ts';
import { createHttpClient, definePlugin, isRefusal, type Services, type Taps } from '../../plugins-sdk/index.ts';
import { callTimeoutOf, failed, firstOfApis, isBelow, worse } from '../shared/upstream.ts';
import { tlsOf } from '../shared/upstream-tls.ts';
import { Settings, Token } from './token.ts';

const oauth2 = optionalKey('api', 'oauth2', Settings);

/** Parameters that the service itself sends to the token endpoint, each with the advice to the operator who sets it. */
const OWN_PARAMETERS = new Map([
  ['grant_type', 'it is always client_credentials'],
  ['scope', 'write oauth2.scope'],
  ['client_id', 'write oauth2.clientId'],
  ['client_secret', 'write oauth2.clientSecret'],
]);

const isAuthorization = (name: string) => name.toLowerCase() === 'authorization';

const REPLACED = 'would be sent in place of the token: leave it out, or oauth2';

/** Refuses parameters that would replace the token: upstream calls would then carry a client's credentials. */
function checkParameters(endpoint: EndpointDraft, context: CheckContext): Finding[] {
  if (oauth2.of(endpoint) === undefined) return [];
  return declaredParameters(endpoint, context).flatMap(({ name, in: place, at }) =>
    place === 'header' && isAuthorization(name) ? [error(at, REPLACED)] : [],
  );
}

function problemOf(tokenUrl: string): string | undefined {
  const url = URL.canParse(tokenUrl) ? new URL(tokenUrl) : undefined;
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname));
  if (!isSafe) return missingScheme(tokenUrl) ?? 'must be an https URL, or an http URL of this machine';
  if (url.username === '' && url.password === '' && url.hash === '') return undefined;
  return 'must hold no user name, password or fragment: put them in clientId and clientSecret';
}

function* checkOauth2(endpoint: EndpointDraft): Iterable<Finding> {
  const settings = oauth2.of(endpoint);
  if (settings === undefined) return;
  const at = apiPath(endpoint);
  if (isReadableOnTheWay(keys.url.of(endpoint)))
    yield warning(`${at}.url`, 'sends its token so that anyone on the way can read it: use https');
  const problem = problemOf(settings.tokenUrl);
  if (problem !== undefined) yield error(`${at}.oauth2.tokenUrl`, problem);
  for (const name of Object.keys(settings.parameters ?? {})) {
    const instead = OWN_PARAMETERS.get(name);
    if (instead !== undefined) yield error(`${at}.oauth2.parameters.${name}`, `cannot be set here: ${instead}`);
  }
  const header = Object.keys(keys.headers.of(endpoint) ?? {}).find(isAuthorization);
  if (header !== undefined) yield error(`${at}.headers.${header}`, REPLACED);
}

function authorizing(tokens: ReadonlyMap<string, Token>): NonNullable<Taps['callApi']> {
  return async (request, { endpoint }, { next }) => {
    const token = tokens.get(endpoint.api);
    // A plugin may have chosen another host, which must not learn the token.
    if (token === undefined || !isBelow(baseUrl(endpoint), request.url)) return undefined;
    const deadline = performance.now() + (request.timeout ?? callTimeoutOf(endpoint));
    const left = () => Math.max(1, Math.floor(deadline - performance.now()));
    let text: string | undefined;
    const call = async () => {
      // The fetch goes on for other requests that wait for it.
      const got = await withTimeout(left(), token.get());
      if (got === LATE) throw failed('oauth2: timeout: no token in time', 'timeout');
      text = got;
      const callHeaders = { ...request.callHeaders, Authorization: `Bearer ${text}` };
      return next({ ...request, callHeaders, timeout: left() });
    };
    try {
      return await call();
    } catch (error) {
      const isRejected = text !== undefined && isRefusal(error) && error.upstreamStatus === 401;
      if (!isRejected || !token.reject(text ?? '')) throw error;
      return call().catch((later: unknown) => {
        throw worse(error, later);
      });
    }
  };
}

/** Makes the token of each API with `oauth2`. */
function tokensOf({ endpoints, meters }: Services): ReadonlyMap<string, Token> {
  const tokens = new Map<string, Token>();
  for (const endpoint of endpoints) {
    const { api } = endpoint;
    const settings = oauth2.of(endpoint);
    if (settings === undefined || tokens.has(api)) continue;
    const counted = meters.counter({
      name: 'upstream_tokens_total',
      help: 'Tokens of OAuth 2.0 that were asked for: fetched or failed',
      labels: ['api', 'outcome'],
      initial: ['fetched', 'failed'].map((outcome) => ({ api, outcome })),
    });
    // `servername` names the upstream, not the token endpoint.
    const { servername: _, ...tls } = tlsOf(endpoint) ?? {};
    const client = createHttpClient({ tls });
    const timeout = callTimeoutOf(endpoint);
    tokens.set(api, new Token({ settings, client, timeout, ended: (outcome) => counted({ api, outcome }) }));
  }
  return tokens;
}

/** Gets tokens and sends them with upstream calls. After a 401 it renews the token and repeats the call, once. */
export const upstreamOauth2 = definePlugin({
  name: 'upstream-oauth2',
  budget: 'none',
  keys: [oauth2],
  check: (context) => [
    ...firstOfApis(context.endpoints).flatMap((endpoint) => [...checkOauth2(endpoint)]),
    ...context.endpoints.flatMap((endpoint) => checkParameters(endpoint, context)),
  ],
  setup(services) {
    const tokens = tokensOf(services);
    if (tokens.size === 0) return {};
    return {
      stop: async () => {
        await Promise.all([...tokens.values()].map((token) => token.close()));
      },
      hooks: { callApi: authorizing(tokens) },
    };
  },
});
