import type { TokenEndpointResponse } from 'oauth4webapi';
import { classOfRequest, classOfStatus } from '../../plugins-sdk/failure-class.ts';
import { type HttpClient, RequestFailure, type Static, Type } from '../../plugins-sdk/index.ts';
import type { BoundedResponse } from '../../plugins-sdk/lib/http/client/index.ts';
import { isRecord, jsonIn } from '../../plugins-sdk/lib/json/value.ts';
import { closedObject } from '../../plugins-sdk/schema/closed-object.ts';
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
    let text = '';
    try {
      response = await library.clientCredentialsGrantRequest(server, client, way(clientSecret), parameters, {
        // The scheme was checked with the config.
        [library.allowInsecureRequests]: true,
        [library.customFetch]: (url, { headers, body }) => this.#send(url, headers, String(body)),
      });
      text = await response.clone().text();
      const token = await library.processClientCredentialsResponse(server, client, response);
      // Anything else could end its header (RFC 6750, section 2.1).
      if (!/^[\x21-\x7e]+$/.test(token.access_token)) throw new Error('no token');
      return token;
    } catch (error) {
      if (error instanceof RequestFailure)
        throw failed(`oauth2: ${error.kind}: ${error.message}`, classOfRequest(error));
      // The library's errors hold what the server said, which may be secret.
      throw this.#refused(response, text);
    }
  }

  /** A 4xx is about the service's own credentials, never about what a client asks: no status of an upstream says so. */
  #refused(response: Response | undefined, text: string): unknown {
    const { status = 0, headers } = response ?? {};
    const isRefused = status >= 400 && status < 500;
    const retryAfter = retryAfterOf({ 'retry-after': headers?.get('Retry-After') ?? undefined });
    const upstreamStatus = isRefused && status !== 429 ? undefined : status;
    const said = `oauth2: no token, status ${status || 'unknown'}`;
    const error = failed(status === 200 ? `${said}: ${faultIn(text)}` : said, classOfStatus(status), {
      upstreamStatus,
      retryAfter,
    });
    const rest = Math.min(Math.max(retryAfter ?? 0, REFUSED_MS), LONGEST_REFUSED_MS);
    if (isRefused) this.#refusal = { error, until: performance.now() + rest };
    return error;
  }

  async #send(url: string, headers: Record<string, string>, body: string): Promise<Response> {
    const { client, timeout } = this.#options;
    const answer = await client.request({ method: 'POST', url, headers, body, timeout, maxBytes: TOKEN_LIMIT });
    const shown = ['content-type', 'retry-after'].flatMap((name) => {
      const value = answer.headers[name];
      return typeof value === 'string' ? [[name, value] as [string, string]] : [];
    });
    return new Response(tolerated(answer), { status: answer.status, headers: shown });
  }
}

/** The answer of a server that means well: what is null is not there, a bearer token may have no type or that of its format. */
function tolerated({ status, body }: BoundedResponse): string | Uint8Array {
  const token = status === 200 ? jsonIn(body.toString()) : undefined;
  if (!isRecord(token)) return new Uint8Array(body);
  const there = Object.fromEntries(Object.entries(token).filter(([, value]) => value !== null));
  const { token_type: type = 'Bearer', expires_in: seconds } = there;
  const lifetime = typeof seconds === 'string' && /^\d{1,15}$/.test(seconds) ? { expires_in: Number(seconds) } : {};
  return JSON.stringify({ ...there, ...lifetime, token_type: /^jwt$/i.test(String(type)) ? 'Bearer' : type });
}

/** What keeps an answer from being a token; nothing of what it says is shown. */
function faultIn(body: string): string {
  const token = jsonIn(body);
  if (!isRecord(token)) return 'it is no JSON object';
  const { access_token: text, token_type: type, expires_in: seconds } = token;
  if (typeof text !== 'string' || !/^[\x21-\x7e]+$/.test(text)) return 'access_token is missing, or no token';
  if (typeof type !== 'string' || !/^bearer$/i.test(type)) return 'token_type is neither Bearer nor JWT';
  if (seconds !== undefined && typeof seconds !== 'number') return 'expires_in is no number of seconds';
  return 'scope, refresh_token or id_token is no text, or the type of the content is not JSON';
}
