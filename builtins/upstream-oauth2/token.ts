import { isRecord, jsonIn } from '../../lib/json/value.ts';
import { closedObject } from '../../plugins-sdk/config.ts';
import { type HttpClient, type Refusal, RequestFailure, type Static, Type } from '../../plugins-sdk/index.ts';
import { classOfRequest, classOfStatus } from '../../plugins-sdk/observe.ts';
import { failed, retryAfterOf } from '../shared/upstream.ts';

export const Settings = closedObject(
  {
    tokenUrl: Type.String({ description: 'Token endpoint; https, or http on loopback' }),
    clientId: Type.String({ minLength: 1 }),
    clientSecret: Type.String({ minLength: 1, description: 'Keep it in a variable' }),
    scope: Type.Optional(Type.String({ minLength: 1, description: 'Separated by spaces' })),
    parameters: Type.Optional(
      Type.Record(Type.String({ minLength: 1 }), Type.String(), {
        description: 'Sent in the token request, such as audience; default none',
      }),
    ),
    clientAuth: Type.Optional(
      Type.Enum(['basic', 'post'], { description: 'How id and secret are sent: header or body; default basic' }),
    ),
  },
  'OAuth 2.0 by client credentials (RFC 6749, section 4.4); default none',
);

/** Most bytes of an answer of the token endpoint. */
const TOKEN_LIMIT = 64 * 1024;
/** The part of a token's lifetime after which another one is fetched. */
const RENEWAL = 0.9;
/** Milliseconds in which tokens that the upstream refuses are renewed once at most. */
const REJECTION_MS = 30_000;
/** Least milliseconds between requests after the token endpoint refused one: clients could otherwise get the account locked. */
const REFUSED_MS = 5000;
/** Most milliseconds for which the token endpoint's `Retry-After` is honoured. */
const LONGEST_REFUSED_MS = 60_000;
/** The lifetime of a token whose answer has no `expires_in`, in seconds. A 401 renews it earlier. */
const LIFETIME_S = 3600;

export interface TokenOptions {
  readonly settings: Static<typeof Settings>;
  readonly client: HttpClient;
  /** Timeout of the API's calls, in milliseconds. */
  readonly timeout: number;
  ended(outcome: 'fetched' | 'failed'): void;
}

/** The token of one API: fetched once for all requests that wait for it, and again shortly before it expires. */
export class Token {
  readonly #options: TokenOptions;
  #fetching: Promise<string> | undefined;
  #rejectableAt = 0;
  #present: { readonly text: string; readonly renewAt: number } | undefined;
  #refusal: { readonly error: unknown; readonly until: number } | undefined;

  constructor(options: TokenOptions) {
    this.#options = options;
  }

  close(): Promise<void> {
    return this.#options.client.close();
  }

  /** Returns the token, which it fetches if necessary. @throws Refusal 502 */
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
   * Drops a token that the upstream has refused. It does so seldom, since a 401 may also be about a client's request.
   * @returns whether another token can be tried.
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
      const { text, seconds } = await this.#request();
      this.#present = { text, renewAt: began + seconds * 1000 * RENEWAL };
      this.#options.ended('fetched');
      return text;
    } catch (error) {
      this.#options.ended('failed');
      throw error;
    }
  }

  /** Requests a token (RFC 6749, section 4.4.2). @throws Refusal 502 */
  async #request() {
    const { settings, client, timeout } = this.#options;
    const { tokenUrl: url, scope, parameters, clientAuth } = settings;
    const inBody = clientAuth === 'post' && { client_id: settings.clientId, client_secret: settings.clientSecret };
    const headers = inBody ? ACCEPTED : { ...ACCEPTED, ...credentialHeader(settings) };
    const asked = { ...parameters, grant_type: 'client_credentials', ...(scope && { scope }), ...inBody };
    const body = new URLSearchParams(asked).toString();
    const request = { method: 'POST', url, headers, body, timeout, maxBytes: TOKEN_LIMIT };
    const answer = await client.request(request).catch((error: unknown) => {
      if (!(error instanceof RequestFailure)) throw error;
      throw failed(`oauth2: ${error.kind}: ${error.message}`, classOfRequest(error));
    });
    if (answer.status !== 200) throw this.#refused(answer);
    return grantedIn(answer.body.toString());
  }

  /**
   * Makes the refusal. A 4xx but 429 is about the service's own credentials, not a client's request: it has no
   * `upstreamStatus`.
   */
  #refused({ status, headers }: Pick<HttpAnswer, 'status' | 'headers'>): unknown {
    const isRefused = status >= 400 && status < 500;
    const retryAfter = retryAfterOf(headers);
    const upstreamStatus = isRefused && status !== 429 ? undefined : status;
    // The reason has no text of the server, which may be secret.
    const error = failed(`oauth2: no token, status ${status}`, classOfStatus(status), { upstreamStatus, retryAfter });
    const rest = Math.min(Math.max(retryAfter ?? 0, REFUSED_MS), LONGEST_REFUSED_MS);
    if (isRefused) this.#refusal = { error, until: performance.now() + rest };
    return error;
  }
}

type HttpAnswer = Awaited<ReturnType<HttpClient['request']>>;

const ACCEPTED = { Accept: 'application/json', 'Content-Type': 'application/x-www-form-urlencoded' };

/** Makes the Basic credential. ID and secret are form-encoded first (RFC 6749, section 2.3.1). */
function credentialHeader({ clientId, clientSecret }: Static<typeof Settings>) {
  const [id, secret] = [clientId, clientSecret].map((text) => new URLSearchParams({ '': text }).toString().slice(1));
  return { Authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` };
}

/** Makes the refusal for an answer of status 200 without a usable token. Its reason shows nothing of the answer. */
function noToken(why: string): Refusal {
  return failed(`oauth2: no token, status 200: ${why}`, 'body', { upstreamStatus: 200 });
}

/**
 * Reads the token and its lifetime from an answer. Some servers omit the type, write the token's format in its place, or write
 * the seconds as a text. Other members are ignored.
 * @throws Refusal 502
 */
function grantedIn(body: string) {
  const answer = jsonIn(body);
  if (!isRecord(answer)) throw noToken('it is no JSON object');
  const { access_token, token_type, expires_in } = answer;
  // Other characters could end the header early (RFC 6750, section 2.1).
  if (typeof access_token !== 'string' || !/^[\x21-\x7e]+$/.test(access_token))
    throw noToken('access_token is missing, or no token');
  if (!/^(?:bearer|jwt)$/i.test(scalarText(token_type ?? 'Bearer')))
    throw noToken('token_type is neither Bearer nor JWT');
  const seconds = scalarText(expires_in ?? LIFETIME_S);
  if (!/^\d{1,15}(?:\.\d+)?$/.test(seconds)) throw noToken('expires_in is no number of seconds');
  return { text: access_token, seconds: Number(seconds) };
}

function scalarText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
