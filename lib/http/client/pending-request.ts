import type { Dispatcher } from 'undici';
import { LONGEST_TIMER } from '../../time/timer.ts';
import { BoundedBuffer, type Coding, codedLimit, codingFault, codingOf, decoded, TooLarge } from './body.ts';
import { CLOSED_BY_PEER, codeOf, endFaultText, faultText, isBodilessMismatch, phaseOf } from './faults.ts';
import type { Connection, Pool } from './pool.ts';
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

export const CALLER_ABORTED = 'aborted by the caller';

export type CallOutcome = BoundedResponse | RequestFailure;

/**
 * One request from the queue to its outcome. It is itself the handler of undici's dispatch and of the signal. A call costs
 * one timer and, with a signal, one listener.
 */
export class PendingRequest implements Dispatcher.DispatchHandler {
  readonly #request: BoundedRequest;
  readonly #origin: string;
  readonly #options: Dispatcher.DispatchOptions;
  readonly #pool: Pool;
  readonly #onOutcome: (outcome: CallOutcome) => void;
  #timer: NodeJS.Timeout | undefined;
  #settled = false;
  #connection: Connection | undefined;
  /** Whether a part of the request may be on its way. */
  #sending = false;
  #repeats = 0;
  #status = 0;
  #headers: BoundedResponse['headers'] = {};
  #coding: Coding = 'identity';
  #received: BoundedBuffer;

  constructor(
    request: BoundedRequest,
    { origin, pathname, search }: URL,
    pool: Pool,
    onOutcome: (outcome: CallOutcome) => void,
  ) {
    this.#request = request;
    this.#origin = origin;
    this.#pool = pool;
    this.#onOutcome = onOutcome;
    this.#received = new BoundedBuffer(request.maxBytes);
    const { forwarder } = pool;
    this.#options = {
      method: request.method,
      // A proxy that sends a request on is told where to (RFC 9112, section 3.2.2).
      path: (forwarder === undefined ? '' : origin) + pathname + search,
      headers: outgoingHeaders(
        forwarder === undefined ? request.headers : { ...request.headers, ...forwarder.headers },
      ),
      body: request.body ?? null,
    };
  }

  /** Whether the server may get the request twice. */
  get isRepeatable(): boolean {
    return REPEATABLE.has(this.#request.method);
  }

  start(): void {
    const { timeout, signal } = this.#request;
    const failLate = () => {
      const lack = this.#sending ? 'no complete answer' : 'no connection';
      this.fail('timeout', `${lack} within ${Math.round(timeout)} ms`);
    };
    this.#timer = setTimeout(failLate, Math.min(timeout, LONGEST_TIMER));
    signal?.addEventListener('abort', this);
    this.#pool.acquire(this);
  }

  /** Called by the pool: sends the request on `connection`, which is this call's alone until it hands it back. */
  run(connection: Connection): void {
    this.#connection = connection;
    // What could not be repeated waits for node to look at its sockets: until then one that was closed seems to be open.
    if (this.isRepeatable || !connection.isReused) this.#dispatch();
    else setImmediate(() => this.#dispatch());
  }

  /** Called when the caller's signal aborts. */
  handleEvent(): void {
    this.fail('aborted', CALLER_ABORTED);
  }

  /** Ends the call without an answer; without effect when it has ended. */
  fail(kind: RequestFailureKind, detail: string, phase = this.#phase): void {
    const status = kind === 'too-large' || kind === 'encoding' ? this.#status : undefined;
    const what = `${this.#request.method} ${this.#origin}`;
    this.#settle(failure(kind, what, detail, phase, status));
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

  /** Once it may have been sent, the server may have carried it out. */
  get #phase(): RequestPhase {
    return this.#status > 0 || this.#sending ? 'answer' : 'connect';
  }

  get #hasBody(): boolean {
    return this.#request.method !== 'HEAD' && this.#status !== 204 && this.#status !== 304;
  }

  #dispatch(): void {
    if (!this.#settled) this.#connection?.client.dispatch(this.#options, this);
  }

  #expectBody(): void {
    const { maxBytes } = this.#request;
    const { 'content-encoding': encoding, 'content-length': length } = this.#headers;
    const coding = codingOf(encoding);
    const limit = coding === 'identity' ? maxBytes : codedLimit(maxBytes);
    if (coding === undefined) {
      this.fail('encoding', codingFault(encoding));
    } else if (Number(length) > limit) {
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
      this.fail('network', endFaultText(fault));
    } else {
      this.#pool.release(this.#connection);
      this.#connection = undefined;
      void this.#decode(this.#received.bytes());
    }
  }

  async #decode(body: Buffer): Promise<void> {
    if (this.#coding === 'identity') return this.#succeed(body);
    try {
      this.#succeed(await decoded(this.#coding, body, this.#request.maxBytes));
    } catch (error) {
      if (error instanceof TooLarge) this.#failTooLarge();
      else this.fail('encoding', (error as Error).message);
    }
  }

  #breakOff(error: Error): void {
    if (this.#settled) return;
    if (this.#mayRepeat(error)) {
      this.#repeats += 1;
      this.#sending = false;
      this.#dispatch();
    } else if (isBodilessMismatch(error, this.#status, this.#hasBody)) {
      this.#succeed(this.#received.bytes());
    } else {
      this.fail('network', faultText(error), this.#phase === 'answer' ? 'answer' : phaseOf(error));
    }
  }

  /** What was not sent, or was lost with a connection that had served others before. */
  #mayRepeat(error: Error): boolean {
    if (this.#repeats === MOST_REPEATS || this.#status > 0 || !CLOSED_BY_PEER.has(codeOf(error))) return false;
    return !this.#sending || (this.isRepeatable && this.#connection?.isReused === true);
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
    if (this.#connection) this.#pool.discard(this.#connection);
    else this.#pool.leave(this);
    this.#onOutcome(outcome);
  }
}
