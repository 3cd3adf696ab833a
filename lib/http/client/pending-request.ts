import type { Dispatcher } from 'undici';
import { LONGEST_TIMER } from '../../time/timer.ts';
import {
  BoundedBuffer,
  type Coding,
  type Compression,
  codedLimit,
  codingFault,
  codingOf,
  createDecoder,
  type Decoder,
  isWholeStream,
  NO_BYTES,
} from './body.ts';
import type { Connection } from './connection.ts';
import { CLOSED_BY_PEER, codeOf, faultText, isBodilessMismatch, isUnreadable } from './faults.ts';
import type { Pool } from './pool.ts';
import {
  type BoundedRequest,
  type BoundedResponse,
  failure,
  outgoingHeaders,
  type RequestFailure,
  type RequestFailureKind,
  type RequestPhase,
} from './request.ts';
import { WRONG_CREDENTIALS } from './tunnel.ts';

/** Methods whose requests may reach the server twice (RFC 9110, section 9.2.1). */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS']);

/** How often one call may be sent again. */
const MOST_REPEATS = 2;

export const CLIENT_CLOSED = 'the client is closed';
export const CALLER_ABORTED = 'aborted by the caller';

export type CallOutcome = BoundedResponse | RequestFailure;

/**
 * One request from the queue to its outcome. It is itself the handler of undici's dispatch and of the signal, and hands
 * itself to the timer. A call costs one timer and, with a signal, one listener.
 */
export class PendingRequest implements Dispatcher.DispatchHandler {
  /** Where it stands among the calls under way. */
  place = 0;
  readonly #request: BoundedRequest;
  readonly #origin: string;
  readonly #options: Dispatcher.DispatchOptions;
  readonly #pool: Pool;
  readonly #onOutcome: (outcome: CallOutcome) => void;
  #timer: NodeJS.Timeout | undefined;
  #connection: Connection | undefined;
  #decoder: Decoder | undefined;
  #settled = false;
  /** Whether a part of the request may be on its way. */
  #sending = false;
  #repeats = 0;
  #status = 0;
  #headers: BoundedResponse['headers'] = {};
  #coding: Coding = 'identity';
  #received: BoundedBuffer;

  constructor(request: BoundedRequest, url: URL, pool: Pool, onOutcome: (outcome: CallOutcome) => void) {
    this.#request = request;
    this.#origin = url.origin;
    const { forwarder } = pool;
    this.#options = {
      method: request.method,
      // Who sends a request on is told where to (RFC 9112, section 3.2.2).
      path: (forwarder === undefined ? '' : url.origin) + url.pathname + url.search,
      headers: outgoingHeaders(
        forwarder === undefined ? request.headers : { ...request.headers, ...forwarder.headers },
      ),
      body: request.body ?? null,
    };
    this.#pool = pool;
    this.#onOutcome = onOutcome;
    this.#received = new BoundedBuffer(request.maxBytes);
  }

  /** Whether the server may get the request twice. */
  get isRepeatable(): boolean {
    return REPEATABLE.has(this.#request.method);
  }

  /** What it has waited for in vain, if it ends now. */
  get lack(): string {
    return this.#connection?.lack ?? 'no complete answer';
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
    // undici waits for the end of node's present turn, which may have begun before the server closed the connection. What
    // could not be repeated waits one turn longer: then node has looked at its sockets again.
    if (this.isRepeatable || connection.idleFor === undefined) this.#dispatch();
    else setImmediate(() => this.#dispatch());
  }

  /** Called when the caller's signal aborts. */
  handleEvent(): void {
    this.fail('aborted', CALLER_ABORTED);
  }

  /** Ends the call without an answer; without effect when it has ended. */
  fail(kind: RequestFailureKind, detail: string, phase = this.#phase): void {
    const status = kind === 'too-large' || kind === 'encoding' ? this.#status : undefined;
    this.#settle(failure(kind, this.#request.method, this.#origin, detail, phase, status));
  }

  onRequestStart(): void {
    this.#sending = true;
  }

  onResponseStart(_controller: unknown, status: number, headers: BoundedResponse['headers']): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    if (status === 407 && this.#pool.forwarder !== undefined) this.fail('network', WRONG_CREDENTIALS, 'connect');
    else if (this.#hasBody) this.#expectBody();
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

  get #phase(): RequestPhase {
    // Once it may have been sent, the server may have carried it out.
    return this.#status > 0 || this.#sending ? 'answer' : (this.#connection?.phase ?? 'connect');
  }

  get #hasBody(): boolean {
    return this.#request.method !== 'HEAD' && this.#status !== 204 && this.#status !== 304;
  }

  #dispatch(): void {
    if (!this.#settled) this.#connection?.client.dispatch(this.#options, this);
  }

  #expectBody(): void {
    const { maxBytes } = this.#request;
    const coding = codingOf(this.#headers['content-encoding']);
    const limit = coding === 'identity' ? maxBytes : codedLimit(maxBytes);
    if (!coding) {
      this.fail('encoding', codingFault(this.#headers['content-encoding']));
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
      this.fail('network', faultText(fault, true));
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
      this.#repeats += 1;
      this.#sending = false;
      this.#dispatch();
    } else if (isBodilessMismatch(error, this.#status, this.#hasBody)) {
      this.#succeed(NO_BYTES);
    } else {
      this.fail('network', faultText(error), isUnreadable(error) ? 'answer' : undefined);
    }
  }

  /** What was not sent, or was lost with a connection that had served others before; the next socket is a new one. */
  #mayRepeat(error: Error): boolean {
    if (this.#repeats === MOST_REPEATS || !CLOSED_BY_PEER.has(codeOf(error))) return false;
    return !this.#sending || (this.isRepeatable && this.#connection?.idleFor !== undefined);
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

  #settle(outcome: CallOutcome): void {
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

function failLate(call: PendingRequest, timeout: number): void {
  call.fail('timeout', `${call.lack} within ${Math.round(timeout)} ms`);
}
