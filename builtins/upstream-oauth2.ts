import type { TokenEndpointResponse } from 'oauth4webapi';
import { apiPath, error, warning } from '../plugins-sdk/checks.ts';
import { classOfRequest } from '../plugins-sdk/failure-class.ts';
import {
  configKey,
  createHttpClient,
  definePlugin,
  type Endpoint,
  type EndpointDraft,
  type Finding,
  type HttpClient,
  isRefusal,
  RequestFailure,
  type Static,
  type Taps,
  Type,
} from '../plugins-sdk/index.ts';
import { DEFAULT_TIMEOUT_MS, keys } from '../plugins-sdk/keys.ts';
import { isReadableOnTheWay } from '../plugins-sdk/lib/http/plain-http.ts';
import { isLoopback } from '../plugins-sdk/lib/http/target.ts';
import { withTimeout } from '../plugins-sdk/lib/time/with-timeout.ts';
import { failed, worse } from './shared/upstream-failure.ts';
import { tlsKey } from './shared/upstream-tls.ts';

const Settings = Type.Object(
  {
    tokenUrl: Type.String({ description: 'Token endpoint; https, or http on loopback' }),
    clientId: Type.String({ minLength: 1 }),
    clientSecret: Type.String({ minLength: 1, description: 'Keep it in a variable' }),
    scope: Type.Optional(Type.String({ minLength: 1, description: 'What is asked for, separated by spaces' })),
    clientAuth: Type.Optional(
      Type.Enum(['basic', 'post'], {
        description: 'How id and secret are sent: in a header or in the body; default basic',
      }),
    ),
  },
  {
    additionalProperties: false,
    description:
      'Calls the upstream with a token of OAuth 2.0, by client credentials (RFC 6749, section 4.4); default none',
  },
);
const oauth2 = configKey('api', 'oauth2', Type.Optional(Settings));

/** Bytes of an answer of the token endpoint. */
const TOKEN_LIMIT = 64 * 1024;
/** Part of a token's time after which another one is fetched. */
const RENEWAL = 0.9;
/** Milliseconds in which a refused token is renewed once. */
const REJECTION_MS = 30_000;
/** Seconds of a token that tells no time of its own; a 401 has it renewed, too. */
const LIFETIME_S = 3600;

function checkOauth2(endpoint: EndpointDraft): Finding[] {
  const settings = oauth2.of(endpoint);
  if (settings === undefined) return [];
  const at = apiPath(endpoint);
  const url = URL.canParse(settings.tokenUrl) ? new URL(settings.tokenUrl) : undefined;
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname));
  const names = Object.keys(keys.headers.of(endpoint) ?? {}).map((name) => name.toLowerCase());
  const isPlain = url?.username === '' && url.password === '' && url.hash === '';
  const isOpen = isReadableOnTheWay(keys.url.of(endpoint));
  return [
    ...(isOpen ? [warning(`${at}.url`, 'sends its token so that anyone on the way can read it: use https')] : []),
    ...(isSafe ? [] : [error(`${at}.oauth2.tokenUrl`, 'must be an https URL, or an http URL of this machine')]),
    ...(isPlain || !isSafe
      ? []
      : [
          error(
            `${at}.oauth2.tokenUrl`,
            'must hold no user name, password or fragment: put them in clientId and clientSecret',
          ),
        ]),
    ...(names.includes('authorization')
      ? [error(`${at}.headers.Authorization`, 'would be sent in place of the token: leave it out, or oauth2')]
      : []),
  ];
}

/** The token of one API: fetched once for all who wait for it, and again when its time is nearly over. */
class Token {
  readonly #settings: Static<typeof Settings>;
  readonly #client: HttpClient;
  /** Milliseconds of a call of the API. */
  readonly timeout: number;
  #fetching: Promise<string> | undefined;
  #rejectableAt = 0;
  #present: { readonly text: string; readonly renewAt: number } | undefined;

  constructor(endpoint: Endpoint, settings: Static<typeof Settings>, client: HttpClient) {
    this.#settings = settings;
    this.#client = client;
    this.timeout = keys.timeout.of(endpoint) ?? DEFAULT_TIMEOUT_MS;
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  /** @throws Refusal 502 */
  async get(): Promise<string> {
    const found = this.#present;
    if (found !== undefined && performance.now() < found.renewAt) return found.text;
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  /**
   * Has a token renewed that the upstream refuses; seldom, since a 401 may also be about what a client asks.
   * @returns whether there is another one to call with.
   */
  reject(text: string): boolean {
    if (this.#present?.text !== text) return true;
    if (performance.now() < this.#rejectableAt) return false;
    this.#rejectableAt = performance.now() + REJECTION_MS;
    this.#present = undefined;
    return true;
  }

  async #fetch(): Promise<string> {
    const began = performance.now();
    const { access_token: text, expires_in: seconds = LIFETIME_S } = await this.#request();
    this.#present = { text, renewAt: began + seconds * 1000 * RENEWAL };
    return text;
  }

  async #request(): Promise<TokenEndpointResponse> {
    const library = await import('oauth4webapi');
    const { tokenUrl, clientId, clientSecret, scope, clientAuth } = this.#settings;
    const server = { issuer: tokenUrl, token_endpoint: tokenUrl };
    const client = { client_id: clientId };
    const way = clientAuth === 'post' ? library.ClientSecretPost : library.ClientSecretBasic;
    const parameters = scope === undefined ? {} : { scope };
    let status: number | undefined;
    try {
      const response = await library.clientCredentialsGrantRequest(server, client, way(clientSecret), parameters, {
        // The scheme was checked with the config.
        [library.allowInsecureRequests]: true,
        [library.customFetch]: (url, { headers, body }) => this.#send(url, headers, String(body)),
      });
      status = response.status;
      return await library.processClientCredentialsResponse(server, client, response);
    } catch (error) {
      if (error instanceof RequestFailure)
        throw failed(`oauth2: ${error.kind}: ${error.message}`, classOfRequest(error));
      // The library's errors hold what the server said, which may be secret.
      throw failed(`oauth2: no token, status ${status ?? 'unknown'}`, 'body', { upstreamStatus: status });
    }
  }

  async #send(url: string, headers: Record<string, string>, body: string): Promise<Response> {
    const bounds = { timeout: this.timeout, maxBytes: TOKEN_LIMIT };
    const answer = await this.#client.request({ method: 'POST', url, headers, body, ...bounds });
    const type = String(answer.headers['content-type'] ?? '');
    return new Response(new Uint8Array(answer.body), { status: answer.status, headers: { 'Content-Type': type } });
  }
}

function authorizing(tokens: ReadonlyMap<string, Token>): NonNullable<Taps['callApi']> {
  return async (request, { endpoint }, { next }) => {
    const token = tokens.get(endpoint.api);
    if (token === undefined) return undefined;
    const deadline = performance.now() + (request.timeout ?? token.timeout);
    const left = () => Math.max(1, Math.floor(deadline - performance.now()));
    let text: string | undefined;
    const call = async () => {
      // The fetch goes on for others who wait for it.
      text = await withTimeout(left(), token.get(), () => {
        throw failed('oauth2: timeout: no token in time', 'timeout');
      });
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

/** Gets tokens and sends them with upstream calls. When the upstream answers 401, the token is renewed and the call made again, once. */
export const upstreamOauth2 = definePlugin({
  name: 'upstream-oauth2',
  budget: 'none',
  keys: [oauth2],
  check: ({ endpoints }) => endpoints.filter(({ path }) => path.endsWith('.endpoints[0]')).flatMap(checkOauth2),
  setup({ endpoints }) {
    const tokens = new Map<string, Token>();
    for (const endpoint of endpoints) {
      const settings = oauth2.of(endpoint);
      if (settings === undefined || tokens.has(endpoint.api)) continue;
      tokens.set(endpoint.api, new Token(endpoint, settings, createHttpClient({ tls: tlsKey.of(endpoint) })));
    }
    if (tokens.size === 0) return {};
    return {
      // A library that is missing stops the start, not requests.
      start: async () => void (await import('oauth4webapi')),
      stop: async () => {
        await Promise.all([...tokens.values()].map((token) => token.close()));
      },
      hooks: { callApi: authorizing(tokens) },
    };
  },
});
