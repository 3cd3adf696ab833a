import type { TokenEndpointResponse } from 'oauth4webapi';
import { isRecord, jsonIn } from '../../lib/json/value.ts';
import { closedObject } from '../../plugins-sdk/config.ts';
import { type HttpClient, RequestFailure, type Static, Type } from '../../plugins-sdk/index.ts';
import { classOfRequest, classOfStatus } from '../../plugins-sdk/observe.ts';
import { failed, retryAfterOf } from '../shared/upstream-failure.ts';

export const Settings = closedObject(
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
  'Calls the upstream with a token of OAuth 2.0, by client credentials (RFC 6749, section 4.4); default none',
);

/** Bytes of an answer of the token endpoint. */
const TOKEN_LIMIT = 64 * 1024;
/** Part of a token's time after which another one is fetched. */
const RENEWAL = 0.9;
/** Milliseconds in which a token that the upstream refuses is renewed once. */
const REJECTION_MS = 30_000;
/** Milliseconds without another request after the token endpoint has refused one: clients must not have an account locked by asking. */
const REFUSED_MS = 5000;
/** Milliseconds for which its `Retry-After` is honoured at most. */
const LONGEST_REFUSED_MS = 60_000;
/** Seconds of a token that tells no time of its own; a 401 has it renewed, too. */
const LIFETIME_S = 3600;

export interface TokenOptions {
  readonly settings: Static<typeof Settings>;
  readonly client: HttpClient;
  /** Milliseconds of a call of the API. */
  readonly timeout: number;
  ended(outcome: 'fetched' | 'failed'): void;
}

/** The token of one API: fetched once for all who wait for it, and again when its time is nearly over. */
export class Token {
  readonly #options: TokenOptions;
  #fetching: Promise<string> | undefined;
  #rejectableAt = 0;
  #present: { readonly text: string; readonly renewAt: number } | undefined;
  #refusal: { readonly error: unknown; readonly until: number } | undefined;

  constructor(options: TokenOptions) {
    this.#options = options;
  }

  get timeout(): number {
    return this.#options.timeout;
  }

  close(): Promise<void> {
    return this.#options.client.close();
  }

  /** @throws Refusal 502 */
  async get(): Promise<string> {
    const [found, refusal] = [this.#present, this.#refusal];
    if (found !== undefined && performance.now() < found.renewAt) return found.text;
    if (refusal !== undefined && performance.now() < refusal.until) throw refusal.error;
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
    try {
      const { access_token: text, expires_in: seconds = LIFETIME_S } = await this.#request();
      this.#present = { text, renewAt: began + seconds * 1000 * RENEWAL };
      this.#options.ended('fetched');
      return text;
    } catch (error) {
      this.#options.ended('failed');
      throw error;
    }
  }

  async #request(): Promise<TokenEndpointResponse> {
    const library = await import('oauth4webapi');
    const { tokenUrl, clientId, clientSecret, scope, clientAuth } = this.#options.settings;
    const server = { issuer: tokenUrl, token_endpoint: tokenUrl };
    const client = { client_id: clientId };
    const way = clientAuth === 'post' ? library.ClientSecretPost : library.ClientSecretBasic;
    const parameters = scope === undefined ? {} : { scope };
    let response: Response | undefined;
    try {
      response = await library.clientCredentialsGrantRequest(server, client, way(clientSecret), parameters, {
        // The scheme was checked with the config.
        [library.allowInsecureRequests]: true,
        [library.customFetch]: (url, { headers, body }) => this.#send(url, headers, String(body)),
      });
      return await library.processClientCredentialsResponse(server, client, response);
    } catch (error) {
      if (error instanceof RequestFailure)
        throw failed(`oauth2: ${error.kind}: ${error.message}`, classOfRequest(error));
      if (error instanceof NoToken)
        throw failed(`oauth2: no token, status 200: ${error.message}`, 'body', { upstreamStatus: 200 });
      // The library's errors hold what the server said, which may be secret.
      throw this.#refused(response);
    }
  }

  /** A 4xx is about the service's own credentials, never about what a client asks: no status of an upstream says so. */
  #refused(response: Response | undefined): unknown {
    const { status = 0, headers } = response ?? {};
    const isRefused = status >= 400 && status < 500;
    const retryAfter = retryAfterOf({ 'retry-after': headers?.get('Retry-After') ?? undefined });
    const upstreamStatus = isRefused && status !== 429 ? undefined : status;
    const said = `oauth2: no token, status ${status || 'unknown'}`;
    const error = failed(said, classOfStatus(status), { upstreamStatus, retryAfter });
    const rest = Math.min(Math.max(retryAfter ?? 0, REFUSED_MS), LONGEST_REFUSED_MS);
    if (isRefused) this.#refusal = { error, until: performance.now() + rest };
    return error;
  }

  async #send(url: string, headers: Record<string, string>, body: string): Promise<Response> {
    const { client, timeout } = this.#options;
    const {
      status,
      headers: received,
      body: bytes,
    } = await client.request({
      ...{ method: 'POST', url, headers, body, timeout, maxBytes: TOKEN_LIMIT },
    });
    if (status === 200) return Response.json(tokenIn(bytes.toString()));
    const shown = ['content-type', 'retry-after'].flatMap((name) => {
      const value = received[name];
      return typeof value === 'string' ? [[name, value] as [string, string]] : [];
    });
    return new Response(new Uint8Array(bytes), { status, headers: shown });
  }
}

/** What keeps an answer of status 200 from being a token; nothing of what it says is shown. */
class NoToken extends Error {}

/**
 * What is needed of an answer with a token. Servers that mean well leave the type out, name that of its format or write the seconds
 * as a text; what other members say is nobody's business here.
 * @throws NoToken
 */
function tokenIn(body: string): Pick<TokenEndpointResponse, 'access_token' | 'token_type' | 'expires_in'> {
  const answer = jsonIn(body);
  if (!isRecord(answer)) throw new NoToken('it is no JSON object');
  const { access_token, token_type, expires_in } = answer;
  // Anything else could end its header (RFC 6750, section 2.1).
  if (typeof access_token !== 'string' || !/^[\x21-\x7e]+$/.test(access_token))
    throw new NoToken('access_token is missing, or no token');
  if (!/^(?:bearer|jwt)$/i.test(scalarText(token_type ?? 'Bearer')))
    throw new NoToken('token_type is neither Bearer nor JWT');
  const seconds = scalarText(expires_in ?? LIFETIME_S);
  if (!/^\d{1,15}(?:\.\d+)?$/.test(seconds)) throw new NoToken('expires_in is no number of seconds');
  return { access_token, token_type: 'bearer', expires_in: Number(seconds) };
}

function scalarText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
