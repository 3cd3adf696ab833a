import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { linger } from './ending.ts';
import type { Reader } from './gate.ts';
import { Probes } from './probes.ts';
import { queuedOf, startReading, stopReading } from './socket-internals.ts';
import { readAgain } from './upgrade.ts';

/** What a connection may have under way, and how long. */
export interface ConnectionBounds {
  /** Requests that are read and answered at a time; what comes behind them waits unread until all are answered. */
  readonly requests: number;
  /** Bytes of answers that the client has not taken, from which on no further request is read. */
  readonly unread: number;
  /** Milliseconds in which the client must take something of an answer. */
  readonly stall: number;
  /** Milliseconds until the first look whether a client is there that ended its side; each further one comes twice as late. */
  readonly probe: number;
}

/** Times later that a client is looked at which is not read. */
const HELD_PROBES = 10;

export const BOUNDS: ConnectionBounds = { requests: 16, unread: 1024 * 1024, stall: 30_000, probe: 100 };

/** What one client connection has under way. Node bounds neither the requests that it reads ahead nor what nobody reads. */
export class Connection implements Reader {
  readonly socket: Socket;
  readonly address: string;
  /** When it was accepted, in milliseconds. */
  readonly since: number;
  taken = 0;
  /** Whether it waits for its turn to be read: a request may be on its way. */
  isStopped = false;
  /** Whether no further request is taken. */
  isEnding = false;
  readonly #server: Server;
  readonly #bounds: ConnectionBounds;
  readonly #underWay: ServerResponse[] = [];
  readonly #unread = new Map<ServerResponse, number>();
  #unreadBytes = 0;
  /** Whether the client had sent nothing at the last look, and is read since. */
  #wasSilent = false;
  /** Whether the client is being timed. */
  #isTimed = false;
  #latest: ServerResponse | undefined;
  /** Whether node has handed a request back, with what came behind it: nobody reads until all before it is answered. */
  #isCut = false;
  #whenAnswered: (() => void) | undefined;
  /** What the client had sent when it last waited for nothing. */
  #idleBytes = 0;
  /** Bytes that the system had not taken at the last look. */
  #queued = 0;
  readonly #probes: Probes;

  constructor(server: Server, socket: Socket, bounds: ConnectionBounds, since: number) {
    this.#server = server;
    this.socket = socket;
    this.address = socket.remoteAddress ?? '';
    this.#bounds = bounds;
    this.since = since;
    this.#probes = new Probes(
      () => this.#delayOfProbe,
      () => this.#current,
    );
    // Node resumes a socket that is new, and whoever reads a body does; behind a cut what came then would be lost.
    socket.on('resume', () => {
      if (this.#isCut) socket.pause();
      else if (this.isStopped) stopReading(socket);
    });
    socket.on('end', () => {
      this.#probes.stop();
      this.#probes.start();
    });
    // Node takes its own listeners off while a wish for another protocol waits, and an error that nobody hears ends the process.
    socket.on('error', () => undefined);
    socket.on('timeout', () => this.#isTimed && socket.destroy());
  }

  get isIdle(): boolean {
    return this.#underWay.length === 0 && !this.#isCut;
  }

  /**
   * Looks whether the client has sent nothing of a further request; node has deadlines for who has sent a part of one.
   * @returns whether it was so at the last look, too: what it has sent may not be read yet in this turn of the event loop.
   */
  looksSilent(): boolean {
    const was = this.#wasSilent;
    const { bytesRead, writableEnded } = this.socket;
    // One that lingers ends by itself.
    this.#wasSilent = this.isIdle && !this.isStopped && bytesRead === this.#idleBytes && !writableEnded;
    return was && this.#wasSilent;
  }

  /** Whether one more request may be read. */
  get mayBegin(): boolean {
    return !this.isEnding && this.#underWay.length < this.#bounds.requests && this.#unreadBytes < this.#bounds.unread;
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

  begin(response: ServerResponse): void {
    this.#underWay.push(response);
    this.#latest = response;
    this.#probes.start();
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
    // Its turn to be read will not come.
    if (this.#isCut) this.isStopped = false;
    this.#isCut = false;
    this.#whenAnswered = undefined;
    return this.#latest === response;
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

  /** The client's system has taken all that was written of the response. @returns its bytes that were left unread. */
  take(response: ServerResponse): number {
    const bytes = this.#unread.size === 0 ? 0 : (this.#unread.get(response) ?? 0);
    if (bytes > 0) this.#unread.delete(response);
    this.#unreadBytes -= bytes;
    this.#time();
    return bytes;
  }

  /** The response is out, or will never be. @returns the bytes of it that were left unread. */
  end(response: ServerResponse): number {
    const bytes = this.take(response);
    const index = this.#underWay.indexOf(response);
    if (index >= 0) this.#underWay.splice(index, 1);
    this.#time();
    if (this.#underWay.length === 0) {
      this.#idleBytes = this.socket.bytesRead;
      this.#answered();
    } else this.#probes.start();
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

  /**
   * Node has handed a request back, and reads no more.
   * @param answered called once all before it is answered; never if the connection closes before.
   */
  cut(answered: () => void): void {
    this.#isCut = true;
    this.socket.pause();
    stopReading(this.socket);
    this.#whenAnswered = answered;
    if (this.#underWay.length === 0) this.#answered();
    else this.#probes.start();
  }

  stop(): void {
    this.isStopped = true;
    stopReading(this.socket);
  }

  start(): void {
    this.isStopped = false;
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

  /** Milliseconds until the first look whether the client is there, if its end would not be heard of. */
  get #delayOfProbe(): number | undefined {
    if (this.isIdle) return undefined;
    if (this.socket.readableEnded) return this.#bounds.probe;
    return this.#isCut ? this.#bounds.probe * HELD_PROBES : undefined;
  }

  /** Ends what was under way: node closes the response that it is sending, but none of those behind it. */
  close(): void {
    this.#probes.stop();
    for (const response of [...this.#underWay]) {
      if (response.socket !== null) continue;
      response.destroy();
      response.emit('close');
    }
  }
}
