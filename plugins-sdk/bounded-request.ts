import { Socket } from 'node:net';
import {
  type BrotliDecompress,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  type Gunzip,
  type Inflate,
  type InflateRaw,
} from 'node:zlib';
import type { buildConnector, Client, Dispatcher } from 'undici';
import type { Departing } from './kernel.ts';
import { undici } from './lazy.ts';

/** One HTTP request with its limits. */
export interface BoundedRequest {
  /** Sent as given; HTTP methods are upper-case. */
  readonly method: string;
  /** `http:` or `https:`, without user name and password. A fragment is not sent. */
  readonly url: string | URL;
  /** Sent with their names as given. `accept-encoding` is added when it is missing. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Sent as UTF-8. Its media type is the caller's business. */
  readonly body?: string | undefined;
  /** Milliseconds for everything together: the wait for a connection, connecting, the answer and its decompression. */
  readonly timeout: number;
  /** Largest acceptable body in bytes, after decompression. */
  readonly maxBytes: number;
  /** Aborting it ends the call and destroys its socket at once. */
  readonly signal?: AbortSignal | Departing | undefined;
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
 * Why a request gave no complete answer: `timeout` (the deadline passed), `aborted` (by the caller's signal or by
 * closing the client), `too-large` (more than `maxBytes`), `encoding` (a content coding that is unknown or does not
 * decompress to exactly one body), `network` (anything else, from an invalid URL to a body cut short).
 */
export type RequestFailureKind = 'timeout' | 'aborted' | 'too-large' | 'network' | 'encoding';

/**
 * The only error that {@link HttpClient.request} rejects with. Its message is fit for a log: it names the method and
 * the origin, never the path, the query, a header or a body; it has no `cause` for the same reason.
 */
export class RequestFailure extends Error {
  override readonly name = 'RequestFailure';
  readonly kind: RequestFailureKind;

  constructor(kind: RequestFailureKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Limits of an {@link HttpClient}. */
export interface HttpClientOptions {
  /** Most sockets per origin; further requests wait for one, within their own timeout. Default 128. */
  readonly connections?: number | undefined;
  /** Milliseconds that an idle socket is kept when the server names no time of its own. Default 4000. */
  readonly keepAliveTimeout?: number | undefined;
}

/** An HTTP/1.1 client with keep-alive sockets of its own. */
export interface HttpClient {
  /**
   * Sends one request and reads the whole answer.
   *
   * A GET, HEAD or OPTIONS is sent once more, on a new connection, when the server closes a reused socket before the
   * first byte of the answer: that is a keep-alive socket that ended on its way, not an answer (RFC 9110, section
   * 9.2.2). Other methods are never repeated.
   *
   * A body whose end is the end of the connection (no length, not chunked: HTTP/1.0) is accepted when the connection
   * was closed in order, because nothing tells a cut there.
   * @throws {RequestFailure}
   */
  request(request: BoundedRequest): Promise<BoundedResponse>;
  /** Ends calls under way as `aborted`, closes every socket, and refuses calls from then on. */
  close(): Promise<void>;
}

/** Makes a client. Whoever makes it closes it: a plugin in its `stop`. */
export function createHttpClient(options: HttpClientOptions = {}): HttpClient {
  return new PooledClient(options);
}

const DEFAULT_CONNECTIONS = 128;
const DEFAULT_KEEP_ALIVE = 4000;

/** A longer delay would make Node's timers fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

const EMPTY = Buffer.alloc(0);

const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS']);

class PooledClient implements HttpClient {
  readonly #limit: number;
  readonly #open: (origin: string) => Connection;
  readonly #pools = new Map<string, Pool>();
  readonly #calls = new Calls();
  #closed = false;

  constructor({ connections = DEFAULT_CONNECTIONS, keepAliveTimeout = DEFAULT_KEEP_ALIVE }: HttpClientOptions) {
    if (!Number.isSafeInteger(connections) || connections < 1) {
      throw new RangeError('connections must be a positive integer');
    }
    this.#limit = connections;
    let connector: buildConnector.connector | undefined;
    this.#open = (origin) => {
      // No connect timeout: a call destroys its socket at its own deadline, also one that is still connecting.
      connector ??= undici().buildConnector({ timeout: 0 });
      return new Connection(origin, connector, keepAliveTimeout);
    };
  }

  request(request: BoundedRequest): Promise<BoundedResponse> {
    return new Promise((resolve, reject) => {
      // Before the clock of the call begins: the first one loads it.
      undici();
      const url = parseTarget(request);
      if (this.#closed) throw failure('aborted', request.method, url.origin, CLIENT_CLOSED);
      if (request.signal?.aborted) throw failure('aborted', request.method, url.origin, CALLER_ABORTED);
      const call = new Call(request, url, this.#poolOf(url.origin), (outcome) => {
        this.#calls.delete(call);
        if (outcome instanceof RequestFailure) reject(outcome);
        else resolve(outcome);
      });
      this.#calls.add(call);
      call.start();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    const connections = [...this.#pools.values()].flatMap((pool) => [...pool.connections]);
    for (const call of this.#calls.all()) call.fail('aborted', CLIENT_CLOSED);
    await Promise.all(connections.map((connection) => connection.destroy()));
  }

  #poolOf(origin: string): Pool {
    const known = this.#pools.get(origin);
    if (known) return known;
    const pool = new Pool(
      this.#limit,
      () => this.#open(origin),
      () => this.#pools.delete(origin),
    );
    this.#pools.set(origin, pool);
    return pool;
  }
}

/**
 * Calls under way, in no order. A `Set` of such turnover renews its table every few dozen calls, and each table points to the
 * next: one that V8 has moved to its old generation keeps all that came later, until that is old too.
 */
class Calls {
  readonly #calls: Call[] = [];

  all(): readonly Call[] {
    return [...this.#calls];
  }

  add(call: Call): void {
    call.place = this.#calls.length;
    this.#calls.push(call);
  }

  delete({ place }: Call): void {
    const last = this.#calls.pop();
    if (last === undefined || place === this.#calls.length) return;
    this.#calls[place] = last;
    last.place = place;
  }
}

/**
 * The connections to one origin, each lent to one call at a time.
 *
 * undici's own pools hide which connection a call is on. Then a call that gives up while connecting leaves its request
 * and the socket behind, and an upstream that accepts no connections makes them pile up.
 */
class Pool {
  readonly connections = new Set<Connection>();
  readonly #idle: Connection[] = [];
  readonly #waiting = new Set<Call>();
  readonly #limit: number;
  readonly #open: () => Connection;
  readonly #emptied: () => void;

  constructor(limit: number, open: () => Connection, emptied: () => void) {
    this.#limit = limit;
    this.#open = open;
    this.#emptied = emptied;
  }

  /** Lends the call a connection, now or when its turn comes. */
  acquire(call: Call): void {
    const connection = this.#idle.pop() ?? (this.connections.size < this.#limit ? this.#add() : undefined);
    if (connection) call.run(connection);
    else this.#waiting.add(call);
  }

  /** Takes a call out of the queue. */
  leave(call: Call): void {
    this.#waiting.delete(call);
  }

  /** Takes back a connection whose exchange is complete. */
  release(connection: Connection): void {
    if (connection.usable) {
      connection.reused = true;
      this.#idle.push(connection);
      this.#serveNext();
    } else {
      this.discard(connection);
    }
  }

  /** Destroys a connection, and with it whatever still runs on it. */
  discard(connection: Connection): void {
    this.connections.delete(connection);
    connection.destroy();
    this.#serveNext();
    if (this.connections.size === 0) this.#emptied();
  }

  #add(): Connection {
    const connection = this.#open();
    this.connections.add(connection);
    connection.client.on('disconnect', () => this.#forgetIdle(connection));
    return connection;
  }

  #serveNext(): void {
    const [next] = this.#waiting;
    if (!next) return;
    this.#waiting.delete(next);
    this.acquire(next);
  }

  #forgetIdle(connection: Connection): void {
    const index = this.#idle.indexOf(connection);
    if (index < 0) return;
    this.#idle.splice(index, 1);
    this.discard(connection);
  }
}

/** One keep-alive socket at a time, and the undici client that speaks HTTP on it. */
class Connection {
  readonly client: Client;
  /** Whether the present socket has carried a complete exchange before. */
  reused = false;
  #socket: Socket | undefined;

  constructor(origin: string, connector: buildConnector.connector, keepAliveTimeout: number) {
    this.client = new (undici().Client)(origin, {
      connect: (options, callback) => {
        this.reused = false;
        // Typed as void, but it is the socket, and the only way to reach one that is still connecting.
        const socket: unknown = connector(options, callback);
        this.#socket = socket instanceof Socket ? socket : undefined;
      },
      allowH2: false,
      // The call's deadline covers both.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout,
    });
  }

  get usable(): boolean {
    return this.#socket !== undefined && !this.#socket.destroyed;
  }

  /** Bytes of HTTP that the present socket has received so far. */
  get bytesRead(): number {
    return this.#socket?.bytesRead ?? 0;
  }

  /** What broke the socket, other than undici closing it in order. */
  get fault(): Error | undefined {
    const error = this.#socket?.errored;
    return error && !(error instanceof undici().errors.InformationalError) ? error : undefined;
  }

  /** Resolves when the socket is closed. */
  async destroy(): Promise<void> {
    const closed = this.client.destroy();
    // undici leaves a connecting socket alone; with an error it tells the connector, which then lets go.
    if (this.usable) this.#socket?.destroy(new (undici().errors.InformationalError)('abandoned'));
    await closed;
  }
}

const CLIENT_CLOSED = 'the client is closed';
const CALLER_ABORTED = 'aborted by the caller';

type Outcome = BoundedResponse | RequestFailure;

/**
 * One request from the queue to its outcome. It is itself the handler of undici's dispatch and of the signal, and hands
 * itself to the timer: a call costs one timer and, with a signal, one listener.
 */
class Call implements Dispatcher.DispatchHandler {
  /** Where it stands among the calls under way. */
  place = 0;
  readonly #request: BoundedRequest;
  readonly #origin: string;
  readonly #options: Dispatcher.DispatchOptions;
  readonly #pool: Pool;
  readonly #onOutcome: (outcome: Outcome) => void;
  #timer: NodeJS.Timeout | undefined;
  #connection: Connection | undefined;
  #decoder: Decoder | undefined;
  #settled = false;
  #bytesReadBefore = 0;
  #status = 0;
  #headers: BoundedResponse['headers'] = {};
  #coding: Coding = 'identity';
  #received: BoundedBuffer;

  constructor(request: BoundedRequest, url: URL, pool: Pool, onOutcome: (outcome: Outcome) => void) {
    this.#request = request;
    this.#origin = url.origin;
    this.#options = {
      method: request.method,
      path: url.pathname + url.search,
      headers: outgoingHeaders(request.headers),
      body: request.body ?? null,
    };
    this.#pool = pool;
    this.#onOutcome = onOutcome;
    this.#received = new BoundedBuffer(request.maxBytes);
  }

  start(): void {
    const { timeout, signal } = this.#request;
    this.#timer = setTimeout(failLate, Math.min(timeout, LONGEST_TIMER), this, timeout);
    signal?.addEventListener('abort', this);
    this.#pool.acquire(this);
  }

  /** Called by the pool: sends the request on `connection`, which is this call's alone until it hands it back. */
  run(connection: Connection): void {
    this.#connection = connection;
    connection.client.dispatch(this.#options, this);
  }

  /** Called when the caller's signal aborts. */
  handleEvent(): void {
    this.fail('aborted', CALLER_ABORTED);
  }

  /** Ends the call without an answer; without effect when it has ended. */
  fail(kind: RequestFailureKind, detail: string): void {
    this.#settle(failure(kind, this.#request.method, this.#origin, detail));
  }

  onRequestStart(): void {
    this.#bytesReadBefore = this.#connection?.bytesRead ?? 0;
  }

  onResponseStart(_controller: unknown, status: number, headers: BoundedResponse['headers']): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    if (this.#hasBody) this.#expectBody();
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    if (!this.#settled && !this.#received.append(chunk)) this.#failTooLarge();
  }

  onResponseEnd(): void {
    // undici is still inside its parser here; when it is out, it is known whether more bytes followed the body.
    queueMicrotask(() => this.#finishReceiving());
  }

  onResponseError(_controller: unknown, error: Error): void {
    // undici calls this within its own bookkeeping, and for an invalid request even within dispatch.
    queueMicrotask(() => this.#breakOff(error));
  }

  get #hasBody(): boolean {
    return this.#request.method !== 'HEAD' && this.#status !== 204 && this.#status !== 304;
  }

  #expectBody(): void {
    const { maxBytes } = this.#request;
    const coding = codingOf(this.#headers['content-encoding']);
    const limit = coding === 'identity' ? maxBytes : codedLimit(maxBytes);
    if (!coding) {
      this.fail('encoding', 'the answer has an unknown content encoding');
    } else if (Number(this.#headers['content-length']) > limit) {
      this.#failTooLarge();
    } else {
      this.#coding = coding;
      this.#received = new BoundedBuffer(limit);
    }
  }

  #finishReceiving(): void {
    if (this.#settled || !this.#connection) return;
    const { fault } = this.#connection;
    if (fault) {
      this.fail('network', describe(fault));
    } else {
      this.#pool.release(this.#connection);
      this.#connection = undefined;
      if (this.#coding === 'identity') this.#succeed(this.#received.bytes());
      else this.#decompress(this.#coding, this.#received.bytes());
    }
  }

  #breakOff(error: Error): void {
    if (this.#settled) return;
    if (this.#mayRepeat(error)) {
      this.#connection?.client.dispatch(this.#options, this);
    } else if (isBodilessMismatch(error, this.#status, this.#hasBody)) {
      this.#succeed(EMPTY);
    } else {
      this.fail('network', describe(error));
    }
  }

  /** Once at most: the next socket is a new one. */
  #mayRepeat(error: Error): boolean {
    const connection = this.#connection;
    return (
      REPEATABLE.has(this.#request.method) &&
      connection?.reused === true &&
      connection.bytesRead === this.#bytesReadBefore &&
      CLOSED_BY_PEER.has(codeOf(error))
    );
  }

  #decompress(coding: Compression, coded: Buffer): void {
    const body = new BoundedBuffer(this.#request.maxBytes);
    const decoder = createDecoder(coding, coded);
    this.#decoder = decoder;
    decoder
      .on('data', (chunk: Buffer) => {
        if (!body.append(chunk)) this.#failTooLarge();
      })
      .on('error', () => this.fail('encoding', `the answer is not valid ${coding}`))
      .on('end', () => {
        if (isWholeStream(coding, coded, decoder.bytesWritten, body.length)) this.#succeed(body.bytes());
        else this.fail('encoding', `the answer is more than one ${coding} stream`);
      })
      .end(coded);
  }

  #failTooLarge(): void {
    this.fail('too-large', `the answer is larger than ${this.#request.maxBytes} bytes`);
  }

  #succeed(body: Buffer): void {
    this.#settle({ status: this.#status, headers: this.#headers, body });
  }

  #settle(outcome: Outcome): void {
    if (this.#settled) return;
    this.#settled = true;
    clearTimeout(this.#timer);
    this.#request.signal?.removeEventListener('abort', this);
    this.#decoder?.destroy();
    if (this.#connection) this.#pool.discard(this.#connection);
    else this.#pool.leave(this);
    this.#onOutcome(outcome);
  }
}

function failLate(call: Call, timeout: number): void {
  call.fail('timeout', `no complete answer within ${Math.round(timeout)} ms`);
}

function failure(kind: RequestFailureKind, method: string, origin: string, detail: string): RequestFailure {
  return new RequestFailure(kind, `${method} ${origin} failed: ${detail}`);
}

function parseTarget({ method, url }: BoundedRequest): URL {
  const target = url instanceof URL ? url : parseUrl(url);
  if (!target) throw new RequestFailure('network', `${method} failed: the URL is not valid`);
  if (target.protocol !== 'http:' && target.protocol !== 'https:') {
    throw new RequestFailure('network', `${method} failed: the URL must start with http:// or https://`);
  }
  if (target.username || target.password) {
    throw failure('network', method, target.origin, 'the URL must not contain a user name or password');
  }
  return target;
}

function parseUrl(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** Name, value, name, value… as undici takes them. */
function outgoingHeaders(headers: Readonly<Record<string, string>> = {}): string[] {
  const list: string[] = [];
  let negotiated = false;
  for (const [name, value] of Object.entries(headers)) {
    list.push(name, value);
    negotiated ||= name.toLowerCase() === 'accept-encoding';
  }
  if (!negotiated) list.push('accept-encoding', 'gzip, deflate, br');
  return list;
}

/** Bytes that arrive in pieces, up to a limit. */
class BoundedBuffer {
  readonly #limit: number;
  #buffer: Buffer = EMPTY;
  #length = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get length(): number {
    return this.#length;
  }

  /** False when the limit is exceeded; nothing is added then. */
  append(chunk: Buffer): boolean {
    const length = this.#length + chunk.length;
    if (length > this.#limit) return false;
    if (this.#length === 0) {
      this.#buffer = chunk;
    } else {
      // Copied into one buffer: a list of one-byte chunks would cost a hundred times their bytes.
      if (length > this.#buffer.length) this.#grow(length);
      chunk.copy(this.#buffer, this.#length);
    }
    this.#length = length;
    return true;
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  #grow(needed: number): void {
    const grown = Buffer.allocUnsafeSlow(Math.min(this.#limit, Math.max(needed, 2 * this.#buffer.length, 4096)));
    this.#buffer.copy(grown, 0, 0, this.#length);
    this.#buffer = grown;
  }
}

type Compression = 'gzip' | 'deflate' | 'br';
type Coding = 'identity' | Compression;
type Decoder = Gunzip | Inflate | InflateRaw | BrotliDecompress;

const CODINGS = new Map<string, Coding>([
  ['', 'identity'],
  ['identity', 'identity'],
  ['gzip', 'gzip'],
  // RFC 9110, section 8.4.1.3: "x-gzip" is to be taken as "gzip".
  ['x-gzip', 'gzip'],
  ['deflate', 'deflate'],
  ['br', 'br'],
]);

/** The one content coding of a body; undefined when it is unknown or there are several. */
function codingOf(header: string | string[] | undefined): Coding | undefined {
  if (header === undefined) return 'identity';
  return CODINGS.get(String(header).trim().toLowerCase());
}

/** A coding adds a little to data that cannot be compressed, so a body of just `maxBytes` may be longer while coded. */
function codedLimit(maxBytes: number): number {
  return maxBytes + Math.ceil(maxBytes / 256) + 1024;
}

function createDecoder(coding: Compression, coded: Buffer): Decoder {
  if (coding === 'gzip') return createGunzip();
  if (coding === 'br') return createBrotliDecompress();
  return hasZlibHeader(coded) ? createInflate() : createInflateRaw();
}

/**
 * "deflate" is the zlib format (RFC 9110, section 8.4.1.2), but some servers send the bare deflate stream. A zlib header
 * has the method 8 and is a multiple of 31 (RFC 1950, section 2.2).
 */
function hasZlibHeader(coded: Buffer): boolean {
  return coded.length >= 2 && ((coded[0] ?? 0) & 0x0f) === 8 && coded.readUInt16BE(0) % 31 === 0;
}

/**
 * Whether the coded bytes were one stream and nothing else. Clients disagree about what follows the first stream, and
 * what two clients read differently must not be signed. A second gzip member shows in the length at the end of the data
 * (RFC 1952, section 2.3.1), which is that of the last member alone.
 */
function isWholeStream(coding: Compression, coded: Buffer, consumed: number, length: number): boolean {
  if (consumed !== coded.length) return false;
  return coding !== 'gzip' || coded.readUInt32LE(coded.length - 4) === length % 2 ** 32;
}

/** undici misses the body of a 304 that states a length, which is the length that a 200 would have (RFC 9110, 8.6). */
function isBodilessMismatch(error: Error, status: number, hasBody: boolean): boolean {
  return status >= 200 && !hasBody && codeOf(error) === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH';
}

const CLOSED_BY_PEER = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

const EXPLANATIONS = new Map([
  ['ECONNREFUSED', 'the connection was refused'],
  ['ECONNRESET', 'the connection was reset'],
  ['EPIPE', 'the connection was closed'],
  ['ENOTFOUND', 'the host name is unknown'],
  ['EAI_AGAIN', 'the host name could not be looked up'],
  ['UND_ERR_SOCKET', 'the connection was closed before the answer was complete'],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'the body is not as long as announced'],
  ['UND_ERR_HEADERS_OVERFLOW', 'the headers of the answer are too large'],
  ['UND_ERR_INVALID_ARG', 'the request is not valid HTTP'],
  ['UND_ERR_NOT_SUPPORTED', 'the request has a header that is not supported'],
]);

/** Says what happened by the error's code alone: the messages of undici and llhttp can quote what was sent. */
function describe(error: Error): string {
  if (error instanceof undici().errors.HTTPParserError) return 'the answer is not valid HTTP';
  const code = codeOf(error);
  return code ? `${EXPLANATIONS.get(code) ?? 'the connection failed'} (${code})` : 'the connection failed';
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' && /^[A-Z][A-Z0-9_]*$/.test(error.code) ? error.code : '';
}
