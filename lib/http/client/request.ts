import type { AbortSource } from '../../bounded/abort-source.ts';

/** One HTTP request with its limits. */
export interface BoundedRequest {
  /** Sent as given; HTTP methods are upper-case. */
  readonly method: string;
  /** `http:` or `https:`, without user name and password. A fragment is not sent. */
  readonly url: string | URL;
  /** Sent with their names as given. `accept-encoding` is added when it is missing. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Sent as UTF-8. The caller sets its `Content-Type`. */
  readonly body?: string | undefined;
  /** Milliseconds for everything together: the wait for a connection, connecting, the answer and its decompression. */
  readonly timeout: number;
  /** Largest acceptable body in bytes, after decompression. */
  readonly maxBytes: number;
  /** Aborting it ends the call and destroys its socket at once. */
  readonly signal?: AbortSource | undefined;
}

/** A complete answer, whatever its status: a redirect is not followed, a 500 is no failure. */
export interface BoundedResponse {
  readonly status: number;
  /** Names in lower case, as received: `content-encoding` and `content-length` describe the body before decompression. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The decompressed body; empty for HEAD, 204 and 304. */
  readonly body: Buffer;
}

/**
 * Why a request gave no complete answer:
 *
 * - `timeout`: the deadline passed.
 * - `aborted`: by the caller's signal, or because the client was closed.
 * - `too-large`: the body has more than `maxBytes`.
 * - `encoding`: the content coding is unknown, or does not decompress to exactly one body.
 * - `network`: anything else, from an invalid URL to a body cut short.
 */
export type RequestFailureKind = 'timeout' | 'aborted' | 'too-large' | 'network' | 'encoding';

/** The phase in which a request failed: the lookup of the server's name, connecting, TLS, or the answer. */
export type RequestPhase = 'dns' | 'connect' | 'tls' | 'answer';

/**
 * The only error of `HttpClient.request`. Its message is safe to log: it names the method and the origin, never the
 * path, the query, a header or a body. It has no `cause` for the same reason.
 */
export class RequestFailure extends Error {
  override readonly name = 'RequestFailure';
  readonly kind: RequestFailureKind;
  readonly phase: RequestPhase;
  /** HTTP status of an answer that came but was refused as `too-large` or for its `encoding`. */
  readonly status: number | undefined;

  constructor(kind: RequestFailureKind, message: string, phase: RequestPhase = 'connect', status?: number) {
    super(message);
    this.kind = kind;
    this.phase = phase;
    this.status = status;
  }
}
