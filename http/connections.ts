import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { NO_TUNNEL, refusalOf, refuse } from './bare-refusals.ts';
import { BOUNDS, Connection, type ConnectionBounds } from './connection.ts';
import { EventLoopDelay } from './event-loop-delay.ts';
import { Gate } from './gate.ts';
import { askBeforeEach } from './socket-internals.ts';
import { putBack } from './upgrade.ts';
import { firstOfGreediest, victimOf } from './victim.ts';

/** What a server may have under way in all, and how long requests wait for their turn. */
export interface ServerBounds extends ConnectionBounds {
  /** Requests that are read in one turn of the event loop: it accepts one new connection in each. */
  readonly begun: number;
  /** Requests under way from which on further ones are shed. */
  readonly underWay: number;
  /** Connections whose client has sent more requests than may be read, each with up to 64 KiB of them. */
  readonly held: number;
  /** Milliseconds that connections wait for their turn, or that the event loop is late, before requests are shed. */
  readonly delay: number;
  /** Bytes of all answers that clients have not taken; beyond, connections are closed. */
  readonly allUnread: number;
}

const ALL_BOUNDS: ServerBounds = {
  ...BOUNDS,
  begun: 128,
  underWay: 4096,
  held: 128,
  delay: 1000,
  allUnread: 64 * 1024 * 1024,
};

/** A request whose turn has come. */
export interface IncomingRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Whether the service has more to do than it can: what may be refused should be. */
  readonly overloaded: boolean;
  /** To be called once the response is written, so that it counts until the client has taken it. */
  written(bytes: number): void;
  /** Sends a part of a response. Resolves once the client's system has taken it, and never where that is gone. */
  write(chunk: string | Uint8Array): Promise<void>;
  /** Whether the connection is to end with this response. */
  closes(must: boolean): boolean;
}

/** The connections of a server, whose requests begin in turns, a bounded number of them at a time. */
export class Connections {
  readonly #bySocket = new Map<Socket, Connection>();
  readonly #gate: Gate;
  /** Those that are cut and not read again. */
  readonly #held = new Set<Connection>();
  /** Those with answers that are written and not out. */
  readonly #holding = new Set<Connection>();
  /** Those whose client leaves an answer unread; in front the one that has made no progress for longest. */
  readonly #slow = new Set<Connection>();
  readonly #server: Server;
  readonly #handle: (incoming: IncomingRequest) => void;
  readonly #bounds: ServerBounds;
  readonly #now: () => number;
  readonly #eventLoopDelay: EventLoopDelay;
  /** Requests under way, without those whose answers stream. */
  #underWay = 0;
  readonly #streaming = new WeakSet<ServerResponse>();
  #unread = 0;
  #isDraining = false;

  /**
   * @param handle gets each request when its turn comes, and must end its response.
   * @param bounds instead of the usual ones.
   * @param now tells milliseconds that only grow.
   */
  constructor(
    server: Server,
    handle: (incoming: IncomingRequest) => void,
    bounds: Partial<ServerBounds> = {},
    now = () => performance.now(),
  ) {
    this.#server = server;
    this.#handle = handle;
    this.#now = now;
    this.#bounds = { ...ALL_BOUNDS, ...bounds };
    this.#gate = new Gate(this.#bounds.begun, now);
    const begin = (request: IncomingMessage, response: ServerResponse) => this.#begin(request, response);
    server.on('connection', (socket: Socket) => {
      const connection = this.#of(socket);
      this.#held.delete(connection);
      // Whatever comes counts: taking it apart is what costs.
      askBeforeEach(
        socket,
        (request) => this.#gate.enter(connection) && connection.mayBegin && refusalOf(request) === undefined,
      );
    });
    server.on('request', begin);
    // Only `100-continue` has a meaning; what else a client expects is no reason for a bare 417 (RFC 9110, section 10.1.1).
    server.on('checkExpectation', begin);
    server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => this.#cut(request, socket, head));
    server.on('connect', (_request, socket: Socket) => this.#refuse(this.#of(socket), NO_TUNNEL));
    this.#eventLoopDelay = new EventLoopDelay(now);
    server.once('close', () => this.#eventLoopDelay.stop());
  }

  get size(): number {
    return this.#bySocket.size;
  }

  /** From now on every connection ends with the answer to its last request. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Reads no further requests, or goes on to. */
  hold(isHeld: boolean): void {
    this.#gate.hold(isHeld);
  }

  /** Ends the connections that wait for nothing, in this look and the one before. @param patience milliseconds that a client has for its first byte. */
  closeIdle(patience: number): void {
    const before = this.#now() - patience;
    for (const [socket, connection] of this.#bySocket)
      if (connection.looksSilent() && (socket.bytesRead > 0 || connection.since <= before)) socket.destroy();
  }

  /** Ends all of them; `closeAllConnections` of node does not know those that it has handed back. */
  closeAll(): void {
    for (const socket of this.#bySocket.keys()) socket.destroy();
  }

  #of(socket: Socket): Connection {
    const known = this.#bySocket.get(socket);
    if (known !== undefined) return known;
    const connection = new Connection(this.#server, socket, this.#bounds, this.#now());
    if (socket.destroyed) return connection;
    this.#bySocket.set(socket, connection);
    this.#gate.add(connection);
    socket.once('close', () => this.#close(connection));
    return connection;
  }

  #close(connection: Connection): void {
    this.#bySocket.delete(connection.socket);
    this.#gate.delete(connection);
    this.#held.delete(connection);
    this.#forget(connection);
    connection.close();
  }

  #forget(connection: Connection): void {
    this.#slow.delete(connection);
    this.#holding.delete(connection);
    this.#unread -= connection.forgetUnread();
  }

  /** Node has handed a request back, with what came behind its headers. */
  #cut(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const connection = this.#of(socket);
    // Behind the last request nothing is read, until its answer is out.
    if (connection.isEnding) {
      if (socket.writableEnded) socket.resume();
      return;
    }
    const refusal = refusalOf(request);
    if (refusal !== undefined) {
      this.#refuse(connection, refusal);
      return;
    }
    this.#gate.delete(connection);
    // At once: behind its end nothing can be put back.
    putBack(request, socket, head);
    this.#held.add(connection);
    connection.cut(() => this.#gate.queue(connection));
    if (this.#held.size <= this.#bounds.held) return;
    const victim = firstOfGreediest(this.#held, () => 1);
    if (victim === undefined) return;
    this.#held.delete(victim);
    this.#gate.delete(victim);
    victim.socket.destroy();
  }

  #refuse(connection: Connection, answer: string): void {
    this.#gate.delete(connection);
    connection.cut(() => refuse(connection.socket, answer));
  }

  #begin(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#of(request.socket);
    const { underWay, delay, begun } = this.#bounds;
    const late = !this.#isDraining && Math.max(this.#eventLoopDelay.value, this.#gate.delay) > delay;
    // One slow request is no overload; and a server that stops gets no more of it, but answers all whom it let in.
    const overloaded = this.#underWay >= underWay || (late && this.#underWay + this.#gate.size > begun / 2);
    this.#underWay += 1;
    connection.begin(response);
    response.on('close', () => this.#end(connection, response));
    this.#handle({
      request,
      response,
      overloaded,
      written: (bytes) => this.#left(connection, response, bytes),
      write: (chunk) => this.#write(connection, response, chunk),
      closes: (must) => (must || this.#isDraining) && this.#endWith(connection, response),
    });
  }

  #endWith(connection: Connection, response: ServerResponse): boolean {
    const isLast = connection.endWith(response);
    // What was put back is not read again: it takes no place.
    if (connection.isEnding) this.#held.delete(connection);
    return isLast;
  }

  #write(connection: Connection, response: ServerResponse, chunk: string | Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      response.write(chunk, (error) => {
        if (error) return;
        // One that streams needs no more than its connection, and may go on for as long.
        if (!this.#streaming.has(response)) this.#underWay -= 1;
        this.#streaming.add(response);
        this.#took(connection, connection.take(response));
        resolve();
      });
      // Node passes it on to the system at the end of this turn.
      process.nextTick(() => this.#left(connection, response, Buffer.byteLength(chunk)));
    });
  }

  /** The response was written, and may not be out. */
  #left(connection: Connection, response: ServerResponse, bytes: number): void {
    if (response.writableLength === 0 || response.destroyed) return;
    connection.leaveUnread(response, bytes);
    this.#unread += bytes;
    this.#holding.add(connection);
    if (connection.isUnread) this.#slow.add(connection);
    if (this.#unread > this.#bounds.allUnread) this.#makeRoom();
  }

  /** Closes connections until the bytes that wait are within their bound. */
  #makeRoom(): void {
    for (const connection of [...this.#slow]) {
      if (!connection.hasTaken()) continue;
      // A Set keeps the order in which its members came.
      this.#slow.delete(connection);
      this.#slow.add(connection);
    }
    while (this.#unread > this.#bounds.allUnread) {
      const victim = victimOf(this.#slow, this.#holding);
      if (victim === undefined) break;
      this.#forget(victim);
      victim.socket.destroy();
    }
  }

  #end(connection: Connection, response: ServerResponse): void {
    if (!this.#streaming.delete(response)) this.#underWay -= 1;
    this.#took(connection, connection.end(response));
  }

  /** @param bytes that the client's system has taken, or that it will never get. */
  #took(connection: Connection, bytes: number): void {
    this.#unread -= bytes;
    if (bytes > 0 || connection.unreadBytes > 0) {
      // What it has taken is progress: it goes to the back.
      this.#slow.delete(connection);
      if (connection.isUnread) this.#slow.add(connection);
      if (connection.unreadBytes === 0) this.#holding.delete(connection);
    }
  }
}
