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
    scope: Type.Optional(Type.String({ minLength: 1, description: 'Separated by spaces' })),
    parameters: Type.Optional(
      Type.Record(Type.String({ minLength: 1 }), Type.String(), {
        description: 'Sent in the token request, such as audience; default none',
      }),
    ),
    clientAuth: Type.Optional(
      Type.Enum(['basic', 'post'], {
        description: 'How id and secret are sent: header or body; default basic',
      }),
    ),
  },
  'OAuth 2.0 by client credentials (RFC 6749, section 4.4); default none',
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
      const { text, seconds } = await this.#request();
      this.#present = { text, renewAt: began + seconds * 1000 * RENEWAL };
      this.#options.ended('fetched');
      return text;
    } catch (error) {
      this.#options.ended('failed');
      throw error;
    }
  }

  /** Asks by RFC 6749, section 4.4.2. */
  async #request(): Promise<Granted> {
    const { settings, client, timeout } = this.#options;
    const { tokenUrl: url, scope, parameters, clientAuth } = settings;
    const { headers, form } = clientAuth === 'post' ? inBody(settings) : inHeader(settings);
    const asked = { ...parameters, grant_type: 'client_credentials', ...(scope && { scope }), ...form };
    const body = new URLSearchParams(asked).toString();
    const request = { method: 'POST', url, headers: { ...ACCEPTED, ...headers }, body, timeout, maxBytes: TOKEN_LIMIT };
    try {
      const answer = await client.request(request);
      if (answer.status !== 200) throw this.#refused(answer);
      return grantedIn(answer.body.toString());
    } catch (error) {
      if (error instanceof RequestFailure)
        throw failed(`oauth2: ${error.kind}: ${error.message}`, classOfRequest(error));
      if (error instanceof NoToken)
        throw failed(`oauth2: no token, status 200: ${error.message}`, 'body', { upstreamStatus: 200 });
      throw error;
    }
  }

  /** A 4xx is about the service's own credentials, never about what a client asks: no status of an upstream says so. */
  #refused({ status, headers }: Pick<HttpAnswer, 'status' | 'headers'>): unknown {
    const isRefused = status >= 400 && status < 500;
    const retryAfter = retryAfterOf(headers);
    const upstreamStatus = isRefused && status !== 429 ? undefined : status;
    // What the server says may be secret.
    const error = failed(`oauth2: no token, status ${status}`, classOfStatus(status), { upstreamStatus, retryAfter });
    const rest = Math.min(Math.max(retryAfter ?? 0, REFUSED_MS), LONGEST_REFUSED_MS);
    if (isRefused) this.#refusal = { error, until: performance.now() + rest };
    return error;
  }
}

type HttpAnswer = Awaited<ReturnType<HttpClient['request']>>;
type Credentials = Pick<Static<typeof Settings>, 'clientId' | 'clientSecret'>;

const ACCEPTED = { Accept: 'application/json', 'Content-Type': 'application/x-www-form-urlencoded' };

function inBody({ clientId, clientSecret }: Credentials) {
  return { headers: {}, form: { client_id: clientId, client_secret: clientSecret } };
}

/** Both are encoded as in a form first (RFC 6749, section 2.3.1). */
function inHeader({ clientId, clientSecret }: Credentials) {
  const [id, secret] = [clientId, clientSecret].map((text) => new URLSearchParams({ '': text }).toString().slice(1));
  return { headers: { Authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` }, form: {} };
}

interface Granted {
  readonly text: string;
  /** Of its time. */
  readonly seconds: number;
}

/** What keeps an answer of status 200 from being a token; nothing of what it says is shown. */
class NoToken extends Error {}

/**
 * What is needed of an answer with a token. Servers that mean well leave the type out, name that of its format or write the seconds
 * as a text; what other members say is nobody's business here.
 * @throws NoToken
 */
function grantedIn(body: string): Granted {
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
  return { text: access_token, seconds: Number(seconds) };
}

function scalarText(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
