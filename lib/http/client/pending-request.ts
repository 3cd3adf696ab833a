import type { Dispatcher } from 'undici';
import { LONGEST_TIMER } from '../../time.ts';
import { type AnswerBody, answerBody } from './body.ts';
import { WRONG_CREDENTIALS } from './connect.ts';
import { CLOSED_BY_PEER, codeOf, endFaultText, faultText, phaseOf, proxyFault } from './faults.ts';
import { CLIENT_CLOSED, type Connection, type Pool } from './pool.ts';
import {
  type BoundedRequest,
  type BoundedResponse,
  RequestFailure,
  type RequestFailureKind,
  type RequestPhase,
} from './request.ts';

/** Methods whose requests may reach the server twice (RFC 9110, section 9.2.1). */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS']);

/** How often one request may be sent again. */
const MOST_REPEATS = 2;

const CALLER_ABORTED = 'aborted by the caller';

const NOTHING = Buffer.alloc(0);

/** Returns headers as undici takes them: name, value, name, value… */
function outgoingHeaders(headers: Readonly<Record<string, string>> = {}): string[] {
  const list: string[] = [];
  let isNegotiated = false;
  for (const [name, value] of Object.entries(headers)) {
    list.push(name, value);
    isNegotiated ||= name.toLowerCase() === 'accept-encoding';
  }
  if (!isNegotiated) list.push('accept-encoding', 'gzip, deflate, br');
  return list;
}

/**
 * One request, from the queue to its outcome. The object itself is undici's dispatch handler and the signal's listener, so that
 * a call costs only one timer and, with a signal, one listener.
 */
export class PendingRequest implements Dispatcher.DispatchHandler {
  readonly #request: BoundedRequest;
  readonly #origin: string;
  readonly #options: Dispatcher.DispatchOptions;
  readonly #pool: Pool;
  readonly #resolve: (response: BoundedResponse) => void;
  readonly #reject: (failure: RequestFailure) => void;
  #timer: NodeJS.Timeout | undefined;
  /** The connection that is lent to the call; none before and after that. */
  #connection: Connection | undefined;
  /** Whether a part of the request may have been sent. */
  #sending = false;
  #repeats = 0;
  #status = 0;
  #headers: BoundedResponse['headers'] = {};
  #body: AnswerBody | undefined;

  constructor(
    request: BoundedRequest,
    { origin, pathname, search }: URL,
    pool: Pool,
    resolve: (response: BoundedResponse) => void,
    reject: (failure: RequestFailure) => void,
  ) {
    this.#request = request;
    this.#origin = origin;
    this.#pool = pool;
    this.#resolve = resolve;
    this.#reject = reject;
    const { forwarder } = pool;
    this.#options = {
      method: request.method,
      // A forwarding proxy needs the absolute URL (RFC 9112, section 3.2.2).
      path: (forwarder === undefined ? '' : origin) + pathname + search,
      headers: outgoingHeaders(forwarder ? { ...request.headers, ...forwarder.headers } : request.headers),
      body: request.body ?? null,
    };
  }

  start(): void {
    const { timeout, signal } = this.#request;
    const failLate = () => {
      const lack = this.#sending ? 'no complete answer' : 'no connection';
      this.fail('timeout', `${lack} within ${Math.round(timeout)} ms`);
    };
    this.#timer = setTimeout(failLate, Math.min(timeout, LONGEST_TIMER));
    signal?.addEventListener('abort', this);
    if (signal?.aborted) this.handleEvent();
    else this.#pool.acquire(this);
  }

  /** Called by the pool: sends the request on `connection`, which no other call uses until this one returns it. */
  run(connection: Connection): void {
    this.#connection = connection;
    if (REPEATABLE.has(this.#request.method) || !connection.isReused) this.#dispatch();
    else {
      // A request that must not be repeated never uses a socket that the server may be about to close. Before node has polled its
      // sockets, a closed one may still look open. The turn for which undici itself waits is too short for one closed in this turn.
      connection.renew();
      setImmediate(() => this.#dispatch());
    }
  }

  #dispatch(): void {
    this.#connection?.client.dispatch(this.#options, this);
  }

  /** Called when the caller's signal aborts. */
  handleEvent(): void {
    this.fail('aborted', CALLER_ABORTED);
  }

  /** Ends the call with a failure. Does nothing if the call has ended. */
  fail(kind: RequestFailureKind, detail: string, phase: RequestPhase = this.#sending ? 'answer' : 'connect'): void {
    const status = kind === 'too-large' || kind === 'encoding' ? this.#status : undefined;
    const message = `${this.#request.method} ${this.#origin} failed: ${detail}`;
    this.#reject(new RequestFailure(kind, message, phase, status));
    this.#end();
  }

  onRequestStart(): void {
    this.#sending = true;
  }

  /** @throws RequestFailure, which undici hands to `onResponseError`. */
  onResponseStart(_controller: unknown, status: number, headers: BoundedResponse['headers']): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    if (status === 407 && this.#pool.forwarder !== undefined) throw proxyFault(WRONG_CREDENTIALS);
    if (this.#request.method === 'HEAD' || status === 204 || status === 304) return;
    this.#body = answerBody(headers, this.#request.maxBytes);
  }

  /** @throws RequestFailure, which undici hands to `onResponseError`. */
  onResponseData(_controller: unknown, chunk: Buffer): void {
    this.#body?.append(chunk);
  }

  onResponseEnd(): void {
    // undici is still inside its parser here. Only when it has returned is it known whether more bytes followed the body.
    queueMicrotask(() => this.#finish());
  }

  onResponseError(_controller: unknown, error: Error): void {
    // undici calls this within its own bookkeeping, and for an invalid request even within dispatch.
    queueMicrotask(() => this.#breakOff(error));
  }

  #finish(): void {
    if (this.#connection === undefined) return;
    const { fault } = this.#connection;
    if (fault) return void this.fail('network', endFaultText(fault));
    this.#pool.release(this.#connection);
    this.#connection = undefined;
    const body = this.#body?.read() ?? NOTHING;
    if (body instanceof Promise) void body.then(this.#succeed.bind(this), this.#breakOff.bind(this));
    else this.#succeed(body);
  }

  #breakOff(error: Error): void {
    const code = codeOf(error);
    if (this.#connection !== undefined && this.#mayRepeat(code, this.#connection)) {
      this.#repeats += 1;
      this.#sending = false;
      this.run(this.#connection);
    } else if (this.#status > 0 && !this.#body && code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') {
      // undici expects a body for a 304 with a length, which is only the length that a 200 would have (RFC 9110, section 8.6).
      this.#succeed(NOTHING);
    } else if (error instanceof RequestFailure) {
      this.fail(error.kind, error.message, error.phase);
    } else if (code === 'UND_ERR_DESTROYED') {
      this.fail('aborted', CLIENT_CLOSED);
    } else {
      this.fail('network', faultText(error), this.#sending ? 'answer' : phaseOf(error));
    }
  }

  /** True if nothing was sent, or if a repeatable request was lost with a reused connection. */
  #mayRepeat(code: string, { isReused }: Connection): boolean {
    if (this.#repeats === MOST_REPEATS || this.#status > 0 || !CLOSED_BY_PEER.has(code)) return false;
    return !this.#sending || (REPEATABLE.has(this.#request.method) && isReused);
  }

  #succeed(body: Buffer): void {
    this.#resolve({ status: this.#status, headers: this.#headers, body });
    this.#end();
  }

  /** Gives back what the call holds. Its promise is settled. */
  #end(): void {
    clearTimeout(this.#timer);
    this.#request.signal?.removeEventListener('abort', this);
    if (this.#connection) this.#pool.discard(this.#connection);
    else this.#pool.leave(this);
    this.#connection = undefined;
  }
}
