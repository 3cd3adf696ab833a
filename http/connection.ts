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
  /** Milliseconds until the first look whether a client is there that ended its side; each further one comes twice as late. */
  readonly probe: number;
}

export const BOUNDS: ConnectionBounds = { requests: 16, unread: 1024 * 1024, stall: 30_000, probe: 100 };

/** A client that is not read may have left, too; it is looked at later. */
const HELD_PROBES = 10;
/** Looks for one response. Some clients fail at the sixth interim response, and node may send one of its own. */
const MOST_PROBES = 4;

/** A request that was read and has not begun. */
export interface Waiting {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** What one client connection has under way. Node bounds neither the requests that it reads ahead nor what nobody reads. */
export class Connection {
  readonly socket: Socket;
  readonly #bounds: ConnectionBounds;
  readonly #waiting: Waiting[] = [];
  readonly #underWay: ServerResponse[] = [];
  readonly #unread = new Map<ServerResponse, number>();
  #unreadBytes = 0;
  /** Whether the client is being timed. */
  #isTimed = false;
  #latest: ServerResponse | undefined;
  #whenIdle: (() => void) | undefined;
  /** Whether the socket is not read because of what is under way; node pauses it for reasons of its own. */
  #isHeld = false;
  /** Bytes that the system had not taken at the last look. */
  #queued = 0;
  #probe: NodeJS.Timeout | undefined;
  /** The response that is waited for, and the looks for it. */
  #probed: ServerResponse | undefined;
  #probes = 0;

  constructor(socket: Socket, bounds: ConnectionBounds) {
    this.socket = socket;
    this.#bounds = bounds;
    // Whoever reads a body resumes the socket, and with it the flow of further requests.
    socket.on('resume', () => this.#hold());
    socket.on('end', () => {
      clearTimeout(this.#probe);
      this.#probe = undefined;
      this.#startProbes();
    });
    // Node takes its own listeners off while a wish for another protocol waits, and an error that nobody hears ends the process.
    socket.on('error', () => undefined);
    socket.on('timeout', () => this.#isTimed && socket.destroy());
  }

  /** Requests that were read and have not begun. */
  get waiting(): number {
    return this.#waiting.length;
  }

  get isIdle(): boolean {
    return this.#underWay.length === 0 && this.#waiting.length === 0;
  }

  get mayBegin(): boolean {
    return this.#underWay.length < this.#bounds.requests && this.#unreadBytes < this.#bounds.unread;
  }

  /** Bytes of answers that were written and are still here, those that wait behind an unfinished one among them. */
  get unreadBytes(): number {
    return this.#unreadBytes;
  }

  /** Whether the client could take an answer and has not: only the one that is being sent, which those behind it wait for. */
  get isUnread(): boolean {
    if (this.#unread.size === 0) return false;
    const current = this.#current;
    return current !== undefined && this.#unread.has(current);
  }

  /** The response that has the socket; those behind it wait for it. */
  get #current(): ServerResponse | undefined {
    return this.#underWay.find(({ socket }) => socket !== null);
  }

  enqueue(waiting: Waiting): void {
    this.#waiting.push(waiting);
    this.#hold();
  }

  dequeue(): Waiting | undefined {
    return this.mayBegin ? this.#waiting.shift() : undefined;
  }

  begin(response: ServerResponse): void {
    this.#underWay.push(response);
    this.#latest = response;
    this.#hold();
    if (this.socket.readableEnded) this.#startProbes();
  }

  /** Whether no request came behind that of the response. */
  isLast(response: ServerResponse): boolean {
    return this.#latest === response && this.#waiting.length === 0 && this.#whenIdle === undefined;
  }

  /** The response was written, and is not out. */
  leaveUnread(response: ServerResponse, bytes: number): void {
    this.#unread.set(response, bytes);
    this.#unreadBytes += bytes;
    this.#queued = queuedOf(this.socket);
    this.#time();
  }

  /** Whether the client has taken something of an answer since the last one was left unread, or since this was asked last. */
  hasTaken(): boolean {
    const before = this.#queued;
    this.#queued = queuedOf(this.socket);
    return this.#queued < before;
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
    const bytes = this.#unread.size === 0 ? 0 : (this.#unread.get(response) ?? 0);
    if (bytes > 0) this.#unread.delete(response);
    this.#unreadBytes -= bytes;
    const index = this.#underWay.indexOf(response);
    if (index >= 0) this.#underWay.splice(index, 1);
    this.#time();
    if (this.#isHeld && !this.#isFull) {
      this.#isHeld = false;
      this.socket.resume();
    }
    if (this.isIdle) this.#idle();
    else if (this.#isUnheard) this.#startProbes();
    return bytes;
  }

  /** Time runs while the client leaves an answer unread, and not while what it asked for waits for others. */
  #time(): void {
    const { isUnread } = this;
    if (isUnread === this.#isTimed) return;
    this.#isTimed = isUnread;
    if (isUnread) this.socket.setTimeout(this.#bounds.stall);
    // One that waits for nothing is timed by node.
    else if (!this.isIdle) this.socket.setTimeout(0);
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
    this.#isHeld = true;
    this.socket.pause();
    this.#startProbes();
  }

  /** Whether the end of the connection would not be heard of. */
  get #isUnheard(): boolean {
    return this.socket.readableEnded || this.#isFull;
  }

  #startProbes(): void {
    if (this.#probe !== undefined || this.isIdle) return;
    const current = this.#current;
    if (current !== this.#probed) this.#probes = 0;
    this.#probed = current;
    if (this.#probes >= MOST_PROBES) return;
    const first = this.#bounds.probe * (this.socket.readableEnded ? 1 : HELD_PROBES);
    this.#probe = setTimeout(() => this.#look(), first * 2 ** this.#probes);
  }

  /**
   * A client that sends no more may still read, or may be gone: its system says the same in both cases, until it is sent
   * something. An interim response harms nobody who reads (RFC 9110, section 15.2), and TCP must do where a few told nothing.
   */
  #look(): void {
    this.#probe = undefined;
    if (this.isIdle || !this.#isUnheard) return;
    const current = this.#current;
    if (current === this.#probed) {
      this.#probes += 1;
      if (current?.headersSent === false && current.req.httpVersion === '1.1') current.writeContinue();
    }
    this.#startProbes();
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

/** Bytes that were written and that the system has not taken: node counts a whole write as one, and shows its end alone. */
function queuedOf(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle');
  const queued: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, 'writeQueueSize') : 0;
  return typeof queued === 'number' ? queued : 0;
}
