import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { BOUNDS, Connection, type ConnectionBounds, type Waiting } from './connection.ts';
import { EventLoopDelay } from './event-loop-delay.ts';
import { namesOneHost } from './host.ts';
import { putBack, readAgain, refuseTunnel } from './upgrade.ts';
import { victimOf } from './victim.ts';

/** What a server may have under way in all, and how long requests wait for their turn. */
export interface ServerBounds extends ConnectionBounds {
  /** Requests that begin in one turn of the event loop: it accepts one new connection in each. */
  readonly begun: number;
  /** Requests under way from which on further ones are shed. */
  readonly underWay: number;
  /** Requests that were read and have not begun; who pipelines more is closed. */
  readonly waiting: number;
  /** Milliseconds that a request waits, or that the event loop is late, before requests are shed. */
  readonly delay: number;
  /** Bytes of all answers that clients have not taken; beyond, connections are closed. */
  readonly allUnread: number;
}

const ALL_BOUNDS: ServerBounds = {
  ...BOUNDS,
  begun: 64,
  underWay: 4096,
  waiting: 8192,
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
  /** Whether the connection is to end with this response. */
  closes(): boolean;
}

/** The connections of a server, whose requests begin in turns, a bounded number of them at a time. */
export class Connections {
  readonly #bySocket = new Map<Socket, Connection>();
  /** Those with a request that may begin, in their order, and since when. */
  readonly #ready = new Map<Connection, number>();
  /** Those with answers that are written and not out. */
  readonly #holding = new Set<Connection>();
  /** Those whose client leaves an answer unread; in front the one that has made no progress for longest. */
  readonly #slow = new Set<Connection>();
  readonly #handle: (incoming: IncomingRequest) => void;
  readonly #bounds: ServerBounds;
  readonly #now: () => number;
  readonly #eventLoopDelay: EventLoopDelay;
  #underWay = 0;
  #waiting = 0;
  #unread = 0;
  #begun = 0;
  #isScheduled = false;
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
    this.#handle = handle;
    this.#now = now;
    this.#bounds = { ...ALL_BOUNDS, ...bounds };
    const arrive = (request: IncomingMessage, response: ServerResponse) => this.#arrive(request, response);
    server.on('connection', (socket: Socket) => this.#of(socket));
    server.on('request', arrive);
    // Only `100-continue` has a meaning; what else a client expects is no reason for a bare 417 (RFC 9110, section 10.1.1).
    server.on('checkExpectation', arrive);
    server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      // At once: behind its end nothing can be put back.
      putBack(request, socket, head);
      this.#of(socket).whenIdle(() => readAgain(server, socket));
    });
    server.on('connect', (_request, socket: Socket) => this.#of(socket).whenIdle(() => refuseTunnel(socket)));
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

  /** Ends the connections that wait for nothing. @param bytesRead what each had sent at the last look, to be filled in. */
  closeIdle(bytesRead: Map<Socket, number>): void {
    for (const [socket, connection] of this.#bySocket) {
      const isSilent = bytesRead.get(socket) === socket.bytesRead;
      bytesRead.set(socket, socket.bytesRead);
      // A request may be on its way, in part.
      if (isSilent && connection.isIdle) socket.destroy();
    }
  }

  #of(socket: Socket): Connection {
    const known = this.#bySocket.get(socket);
    if (known !== undefined) return known;
    const connection = new Connection(socket, this.#bounds);
    if (socket.destroyed) return connection;
    this.#bySocket.set(socket, connection);
    socket.once('close', () => this.#close(connection));
    return connection;
  }

  #close(connection: Connection): void {
    this.#bySocket.delete(connection.socket);
    this.#ready.delete(connection);
    this.#waiting -= connection.waiting;
    this.#forget(connection);
    connection.close();
  }

  #forget(connection: Connection): void {
    this.#slow.delete(connection);
    this.#holding.delete(connection);
    this.#unread -= connection.forgetUnread();
  }

  #arrive(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#of(request.socket);
    const waiting = { request, response };
    if (this.#ready.size === 0 && connection.waiting === 0 && connection.mayBegin && this.#isTurn()) {
      this.#begin(connection, waiting, this.#now());
    } else if (this.#waiting >= this.#bounds.waiting && connection.waiting >= this.#bounds.requests) {
      connection.socket.destroy();
    } else {
      connection.enqueue(waiting);
      this.#waiting += 1;
      this.#makeReady(connection);
    }
  }

  /** Whether one more request may begin in this turn of the event loop. */
  #isTurn(): boolean {
    if (this.#begun >= this.#bounds.begun) return false;
    this.#begun += 1;
    // Most turns begin a few requests: no call back for each of them.
    if (this.#begun === Math.ceil(this.#bounds.begun / 4)) this.#schedule();
    return true;
  }

  #makeReady(connection: Connection): void {
    if (connection.waiting === 0 || !connection.mayBegin) return;
    // What waits behind answers of its own connection waits for its client's sake.
    if (!this.#ready.has(connection)) this.#ready.set(connection, this.#now());
    this.#schedule();
  }

  /** Once in a turn: a second call back would count from nothing again. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#turn();
    });
  }

  #turn(): void {
    this.#begun = 0;
    for (const [connection, since] of this.#ready) {
      if (!this.#isTurn()) break;
      this.#ready.delete(connection);
      const next = connection.dequeue();
      if (next === undefined) continue;
      this.#waiting -= 1;
      this.#begin(connection, next, since);
      this.#makeReady(connection);
    }
    if (this.#ready.size > 0) this.#schedule();
  }

  #begin(connection: Connection, { request, response }: Waiting, since: number): void {
    const { underWay, delay } = this.#bounds;
    const late = Math.max(this.#eventLoopDelay.value, this.#now() - since) > delay;
    // One slow request is no overload.
    const overloaded = this.#underWay >= underWay || (late && this.#underWay + this.#ready.size > this.#bounds.begun);
    this.#underWay += 1;
    connection.begin(response);
    response.on('close', () => this.#end(connection, response));
    const written = (bytes: number) => this.#written(connection, response, bytes);
    if (!namesOneHost(request)) {
      response.writeHead(400, { Connection: 'close' }).end();
      written(0);
      return;
    }
    this.#handle({
      request,
      response,
      overloaded,
      written,
      closes: () => this.#isDraining && connection.isLast(response),
    });
  }

  #written(connection: Connection, response: ServerResponse, bytes: number): void {
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
    this.#underWay -= 1;
    const bytes = connection.end(response);
    this.#unread -= bytes;
    if (bytes > 0 || connection.unreadBytes > 0) {
      // What it has taken is progress: it goes to the back.
      this.#slow.delete(connection);
      if (connection.isUnread) this.#slow.add(connection);
      if (connection.unreadBytes === 0) this.#holding.delete(connection);
    }
    this.#makeReady(connection);
  }
}
