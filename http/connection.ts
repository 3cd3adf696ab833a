import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ServerBounds } from './bounds.ts';
import { linger } from './ending.ts';
import type { Reader } from './gate.ts';
import { queuedOf, startReading, stopReading } from './socket-internals.ts';
import { readAgain } from './upgrade.ts';

/** How many times later the first look comes at a client that is not read. */
const HELD_PROBES = 10;
/** Looks for one response. Some clients fail at the sixth interim response, and node may send one of its own. */
const MOST_PROBES = 4;

/** What one client connection has under way. Node bounds neither the requests that it reads ahead nor what nobody reads. */
export class Connection implements Reader {
  readonly socket: Socket;
  readonly address: string;
  /** When it was accepted, in milliseconds. */
  readonly since: number;
  taken = 0;
  /** Bytes of answers that were written and not taken, also of those that wait behind an unfinished one. */
  unreadBytes = 0;
  /** When the client last took something of an answer. */
  progress = 0;
  /** Whether no further request is taken. */
  isEnding = false;
  /** Whether it waits for its turn to be read: a request may be on its way. */
  #isStopped = false;
  readonly #server: Server;
  readonly #bounds: ServerBounds;
  readonly #underWay = new Set<ServerResponse>();
  #latest: ServerResponse | undefined;
  /** Whether the client had sent nothing at the last look, and is read since. */
  #wasSilent = false;
  /** Whether the client is being timed. */
  #isTimed = false;
  /** Whether node has handed a request back, with what came behind it: nobody reads until all before it is answered. */
  #isCut = false;
  #whenAnswered: (() => void) | undefined;
  /** What the client had sent when it last waited for nothing. */
  #idleBytes = 0;
  /** Bytes that the system had not taken at the last look. */
  #queued = 0;
  /** The next look, the response that is waited for, and the looks for it. */
  #probe: NodeJS.Timeout | undefined;
  #probed: ServerResponse | undefined;
  #probes = 0;

  constructor(server: Server, socket: Socket, bounds: ServerBounds, since: number) {
    this.#server = server;
    this.socket = socket;
    this.address = socket.remoteAddress ?? '';
    this.#bounds = bounds;
    this.since = since;
    // Node resumes a new socket, and so does a reader of a body. Bytes that came behind a cut would be lost.
    socket.on('resume', () => {
      if (this.#isCut) socket.pause();
      else if (this.#isStopped) stopReading(socket);
    });
    socket.on('end', () => {
      clearTimeout(this.#probe);
      this.#probe = undefined;
      this.#lookLater();
    });
    // Node takes its own listeners off while a wish for another protocol waits, and an error that nobody hears ends the process.
    socket.on('error', () => undefined);
    socket.on('timeout', () => this.#isTimed && socket.destroy());
  }

  get #isIdle(): boolean {
    return this.#underWay.size === 0 && !this.#isCut;
  }

  /**
   * Looks whether the client has sent nothing of a further request; node has deadlines for who has sent a part of one.
   * @returns whether it was so at the last look, too: bytes of this turn of the event loop may not be read yet.
   */
  looksSilent(): boolean {
    const was = this.#wasSilent;
    const { bytesRead, writableEnded } = this.socket;
    // A connection that lingers ends by itself.
    this.#wasSilent = this.#isIdle && !this.#isStopped && bytesRead === this.#idleBytes && !writableEnded;
    return was && this.#wasSilent;
  }

  /** Whether one more request may be read. */
  get mayBegin(): boolean {
    return !this.isEnding && this.#underWay.size < this.#bounds.requests && this.unreadBytes < this.#bounds.unread;
  }

  /** Whether the client could take an answer and has not: only the one that is being sent, which those behind it wait for. */
  get isUnread(): boolean {
    const current = this.unreadBytes > 0 ? this.#current : undefined;
    return current?.headersSent === true && current.writableLength > 0;
  }

  /** The response that has the socket; those behind it wait for it. */
  get #current(): ServerResponse | undefined {
    for (const response of this.#underWay) if (response.socket !== null) return response;
    return undefined;
  }

  begin(response: ServerResponse): void {
    this.#underWay.add(response);
    this.#latest = response;
    this.#lookLater();
  }

  /**
   * Takes no request behind those that have begun: what node has handed back is not read again (RFC 9112, section 9.6).
   * @returns whether this one's answer ends the connection.
   */
  endWith(response: ServerResponse): boolean {
    // The last answer is written already: a further request gets one that says so.
    if (this.#latest?.headersSent) return false;
    if (!this.isEnding) linger(this.socket);
    this.isEnding = true;
    // The connection's turn to be read will not come.
    if (this.#isCut) this.#isStopped = false;
    this.#isCut = false;
    this.#whenAnswered = undefined;
    return this.#latest === response;
  }

  /** Takes note of what the client has taken since this was asked last, or since an answer was left unread. */
  noteProgress(): void {
    const before = this.#queued;
    this.#queued = queuedOf(this.socket);
    if (this.#queued < before) this.progress = performance.now();
  }

  /** @param bytes of an answer that were left unread; zero or less, that the client has taken. */
  leave(bytes: number): void {
    this.unreadBytes += bytes;
    if (bytes > 0) this.#queued = queuedOf(this.socket);
    const { isUnread } = this;
    if (bytes < 0 || isUnread !== this.#isTimed) this.progress = performance.now();
    if (isUnread === this.#isTimed) return;
    // Time runs while an answer is unread, and not while the answer waits for others.
    this.#isTimed = isUnread;
    if (isUnread) this.socket.setTimeout(this.#bounds.stall);
    // Node times a connection that waits for nothing.
    else if (!this.#isIdle) this.socket.setTimeout(0);
  }

  /** The response is out, or will never be. */
  end(response: ServerResponse): void {
    this.#underWay.delete(response);
    if (this.#underWay.size === 0) {
      this.#idleBytes = this.socket.bytesRead;
      this.#answered();
    } else this.#lookLater();
  }

  /**
   * Node has handed a request back, and reads no more.
   * @param answered called once all before it is answered; never if the connection closes before.
   */
  cut(answered: () => void): void {
    this.#isCut = true;
    this.socket.pause();
    stopReading(this.socket);
    this.#whenAnswered = answered;
    if (this.#underWay.size === 0) this.#answered();
    else this.#lookLater();
  }

  stop(): void {
    this.#isStopped = true;
    stopReading(this.socket);
  }

  start(): void {
    this.#isStopped = false;
    this.#wasSilent = false;
    if (!this.#isCut) {
      startReading(this.socket);
      return;
    }
    this.#isCut = false;
    readAgain(this.#server, this.socket);
  }

  #answered(): void {
    const callback = this.#whenAnswered;
    this.#whenAnswered = undefined;
    if (callback !== undefined && !this.socket.destroyed) callback();
  }

  /**
   * Finds out whether a client is still there that has ended its side, or is not read. Such a client may still read, or may be gone: its
   * system says the same in both cases, until something is sent. An interim response harms no client that reads (RFC 9110, section
   * 15.2). After a few of them TCP's own deadlines must do.
   */
  #lookLater(): void {
    const { readableEnded } = this.socket;
    if (this.#probe !== undefined || !(readableEnded || this.#isCut)) return;
    const current = this.#current;
    if (current !== this.#probed) this.#probes = 0;
    this.#probed = current;
    if (this.#underWay.size === 0 || this.#probes === MOST_PROBES) return;
    const first = readableEnded ? this.#bounds.probe : this.#bounds.probe * HELD_PROBES;
    this.#probe = setTimeout(() => this.#look(), first * 2 ** this.#probes);
  }

  #look(): void {
    this.#probe = undefined;
    const current = this.#current;
    if (current !== undefined && current === this.#probed) {
      this.#probes += 1;
      if (!current.headersSent && current.req.httpVersion === '1.1') current.writeContinue();
      // Nothing can be put into a stream, and it may be silent for long. So it ends with the client's side.
      if (current.headersSent && !current.writableEnded && this.socket.readableEnded) this.socket.destroy();
    }
    this.#lookLater();
  }

  /** Ends what was under way: node closes the response that it is sending, but none of those behind it. */
  close(): void {
    clearTimeout(this.#probe);
    for (const response of [...this.#underWay]) {
      if (response.socket !== null) continue;
      response.destroy();
      response.emit('close');
    }
  }
}
