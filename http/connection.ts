import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** What a connection may have under way, and how long. */
export interface ConnectionBounds {
  /** Requests that are answered at a time; those behind them wait, and no more are read meanwhile. */
  readonly requests: number;
  /** Bytes of answers that the client has not taken, from which on no further request begins. */
  readonly unread: number;
  /** Milliseconds in which the client must take something of an answer. */
  readonly stall: number;
  /** Milliseconds between two looks whether a client is there that ended its side. */
  readonly probe: number;
}

export const BOUNDS: ConnectionBounds = { requests: 16, unread: 1024 * 1024, stall: 30_000, probe: 100 };

/** A client that is not read may have left, too; it is looked at less often. */
const HELD_PROBES = 10;

/** A request that was read and has not begun. */
export interface Waiting {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** When it came, as `performance.now()` tells it. */
  readonly since: number;
}

/** What one client connection has under way. Node bounds neither the requests that it reads ahead nor what nobody reads. */
export class Connection {
  readonly socket: Socket;
  readonly #bounds: ConnectionBounds;
  readonly #waiting: Waiting[] = [];
  readonly #underWay = new Set<ServerResponse>();
  readonly #unread = new Map<ServerResponse, number>();
  #unreadBytes = 0;
  #latest: ServerResponse | undefined;
  #whenIdle: (() => void) | undefined;
  #probe: NodeJS.Timeout | undefined;

  constructor(socket: Socket, bounds: ConnectionBounds) {
    this.socket = socket;
    this.#bounds = bounds;
    // Whoever reads a body resumes the socket, and with it the flow of further requests.
    socket.on('resume', () => this.#hold());
    socket.on('end', () => this.#probeIn(bounds.probe));
  }

  /** Requests that were read and have not begun. */
  get waiting(): number {
    return this.#waiting.length;
  }

  get isIdle(): boolean {
    return this.#underWay.size === 0 && this.#waiting.length === 0;
  }

  get mayBegin(): boolean {
    return this.#underWay.size < this.#bounds.requests && this.#unreadBytes < this.#bounds.unread;
  }

  get hasUnread(): boolean {
    return this.#unread.size > 0;
  }

  enqueue(waiting: Waiting): void {
    this.#waiting.push(waiting);
    this.#hold();
  }

  dequeue(): Waiting | undefined {
    return this.mayBegin ? this.#waiting.shift() : undefined;
  }

  begin(response: ServerResponse): void {
    this.#underWay.add(response);
    this.#latest = response;
    this.#hold();
  }

  /** Whether no request came behind that of the response. */
  isLast(response: ServerResponse): boolean {
    return this.#latest === response && this.#waiting.length === 0;
  }

  /** The response was written, and the client has not taken it. */
  leaveUnread(response: ServerResponse, bytes: number): void {
    this.#unread.set(response, bytes);
    this.#unreadBytes += bytes;
    this.socket.setTimeout(this.#bounds.stall);
  }

  /** Gives up what the client has not taken. @returns its bytes. */
  forgetUnread(): number {
    const bytes = this.#unreadBytes;
    this.#unread.clear();
    this.#unreadBytes = 0;
    return bytes;
  }

  /** The response is out, or will never be. @returns the bytes of it that were left unread. */
  end(response: ServerResponse): number {
    const bytes = this.#unread.get(response) ?? 0;
    this.#unread.delete(response);
    this.#unreadBytes -= bytes;
    this.#underWay.delete(response);
    // What is under way now waits for others than the client.
    if (bytes > 0 && this.#unread.size === 0 && this.#underWay.size > 0) this.socket.setTimeout(0);
    if (!this.#isFull && this.socket.isPaused()) this.socket.resume();
    if (this.isIdle) this.#idle();
    return bytes;
  }

  /** Calls back once every request that was read is answered; never if the connection closes before. */
  whenIdle(callback: () => void): void {
    this.#whenIdle = callback;
    if (this.isIdle) this.#idle();
  }

  #idle(): void {
    const callback = this.#whenIdle;
    this.#whenIdle = undefined;
    if (callback !== undefined && !this.socket.destroyed) callback();
  }

  get #isFull(): boolean {
    return this.#waiting.length > 0 || !this.mayBegin;
  }

  #hold(): void {
    if (!this.#isFull) return;
    this.socket.pause();
    if (this.#probe === undefined) this.#probeIn(this.#bounds.probe * HELD_PROBES);
  }

  /**
   * A client that sends no more may still read, or may be gone: its system says the same in both cases, until it is sent
   * something. An interim response harms nobody who reads (RFC 9110, section 15.2).
   */
  #probeIn(milliseconds: number): void {
    clearTimeout(this.#probe);
    this.#probe = setTimeout(() => {
      this.#probe = undefined;
      if (this.isIdle || !(this.socket.readableEnded || this.#isFull)) return;
      for (const response of this.#underWay) {
        const isCurrent = response.socket !== null && !response.headersSent;
        if (isCurrent && response.req.httpVersion === '1.1') response.writeContinue();
      }
      this.#probeIn(milliseconds);
    }, milliseconds);
  }

  /** Ends what was under way: node closes the response that it is sending, but none of those behind it. */
  close(): void {
    clearTimeout(this.#probe);
    this.#waiting.length = 0;
    for (const response of [...this.#underWay]) {
      if (response.socket !== null) continue;
      response.destroy();
      response.emit('close');
    }
  }
}
