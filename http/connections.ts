import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { BOUNDS, type ServerBounds } from './bounds.ts';
import { Connection } from './connection.ts';
import { Gate } from './gate.ts';
import { NO_TUNNEL, refusalOf } from './server.ts';
import { askBeforeEach } from './socket-internals.ts';
import { putBack } from './upgrade.ts';

/** Milliseconds between two looks at how late the event loop is. */
const POLL_INTERVAL_MS = 100;

/** A request whose turn has come. */
export interface IncomingRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Whether the service has more to do than it can: a request that may be refused should be. */
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
  /** Connections that are cut and not read again yet, in the order in which they came. */
  readonly #held = new Set<Connection>();
  readonly #server: Server;
  readonly #handle: (incoming: IncomingRequest) => void;
  readonly #bounds: ServerBounds;
  readonly #now: () => number;
  /** Milliseconds by which the event loop was late at the last look. */
  #lateness = 0;
  /** Requests under way. A stream counts until its client has a part of it: it may last as long as its connection. */
  #underWay = 0;
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
    this.#bounds = { ...BOUNDS, ...bounds };
    this.#gate = new Gate(this.#bounds.begun, now);
    const begin = (request: IncomingMessage, response: ServerResponse) => this.#begin(request, response);
    server.on('connection', (socket: Socket) => {
      const connection = this.#of(socket);
      this.#held.delete(connection);
      // Refused requests count, too: parsing is what costs.
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
    this.#watchLateness();
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

  /** Ends all connections; `closeAllConnections` of node does not know those that it has handed back. */
  closeAll(): void {
    for (const socket of this.#bySocket.keys()) socket.destroy();
  }

  #watchLateness(): void {
    let due = this.#now() + POLL_INTERVAL_MS;
    const timer = setInterval(() => {
      const now = this.#now();
      this.#lateness = now - due;
      due = now + POLL_INTERVAL_MS;
    }, POLL_INTERVAL_MS).unref();
    this.#server.once('close', () => clearInterval(timer));
  }

  #of(socket: Socket): Connection {
    const known = this.#bySocket.get(socket);
    if (known !== undefined) return known;
    const connection = new Connection(this.#server, socket, this.#bounds, this.#now());
    if (socket.destroyed) return connection;
    this.#bySocket.set(socket, connection);
    this.#gate.add(connection);
    socket.once('close', () => {
      this.#bySocket.delete(socket);
      this.#letGo(connection);
      this.#count(connection, -connection.unreadBytes);
      connection.close();
    });
    return connection;
  }

  /** The connection is not read again. */
  #letGo(connection: Connection): void {
    this.#gate.delete(connection);
    this.#held.delete(connection);
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
    // At once: nothing can be put back behind the socket's end.
    putBack(request, socket, head);
    this.#held.add(connection);
    connection.cut(() => this.#gate.queue(connection));
    const victim = this.#held.size > this.#bounds.held ? ofGreediest([...this.#held], () => 1)[0] : undefined;
    if (victim === undefined) return;
    this.#letGo(victim);
    victim.socket.destroy();
  }

  /** Ends a connection with an answer to a request that nobody may interpret, behind those before it. */
  #refuse(connection: Connection, answer: string): void {
    const { socket } = connection;
    this.#gate.delete(connection);
    connection.cut(() => {
      socket.write(answer);
      socket.destroySoon();
    });
  }

  #begin(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#of(request.socket);
    const { underWay, delay, begun } = this.#bounds;
    const late = !this.#isDraining && Math.max(this.#lateness, this.#gate.delay) > delay;
    // One slow request is no overload. A server that stops is not late: it answers all whom it let in.
    const overloaded = this.#underWay >= underWay || (late && this.#underWay + this.#gate.size > begun / 2);
    connection.begin(response);
    let [weight, unread] = [1, 0];
    this.#underWay += weight;
    const take = () => {
      this.#underWay -= weight;
      this.#count(connection, -unread);
      [weight, unread] = [0, 0];
    };
    const written = (bytes: number) => {
      if (response.writableLength === 0 || response.destroyed) return;
      unread = bytes;
      this.#count(connection, bytes);
      if (this.#unread > this.#bounds.allUnread) this.#makeRoom();
    };
    const write = (chunk: string | Uint8Array) =>
      new Promise<void>((resolve) => {
        response.write(chunk, (error) => {
          if (error || connection.socket.destroyed) return;
          take();
          resolve();
        });
        // Node passes the chunk on to the system at the end of this turn.
        process.nextTick(written, Buffer.byteLength(chunk));
      });
    response.on('close', () => {
      connection.end(response);
      take();
    });
    const closes = (must: boolean) => (must || this.#isDraining) && this.#endWith(connection, response);
    this.#handle({ request, response, overloaded, written, write, closes });
  }

  #endWith(connection: Connection, response: ServerResponse): boolean {
    const isLast = connection.endWith(response);
    // A request that was put back is not read any more, so it takes no place.
    if (connection.isEnding) this.#held.delete(connection);
    return isLast;
  }

  /** @param bytes of an answer that were left unread; below zero, that the client has taken. */
  #count(connection: Connection, bytes: number): void {
    // A closed connection counts nothing any more.
    const change = Math.max(bytes, -connection.unreadBytes);
    this.#unread += change;
    connection.leave(change);
  }

  /** Closes connections until the bytes that wait are within their bound. */
  #makeRoom(): void {
    const holding = [...this.#bySocket.values()].filter(({ unreadBytes }) => unreadBytes > 0);
    for (const connection of holding) connection.noteProgress();
    while (this.#unread > this.#bounds.allUnread) {
      const slow = ofGreediest(
        holding.filter(({ isUnread }) => isUnread),
        ({ unreadBytes }) => unreadBytes,
      );
      // Where every client reads, the connection with the most bytes ends.
      const victim =
        slow.sort((a, b) => a.progress - b.progress)[0] ?? holding.sort((a, b) => b.unreadBytes - a.unreadBytes)[0];
      if (victim === undefined) break;
      holding.splice(holding.indexOf(victim), 1);
      this.#count(victim, -victim.unreadBytes);
      victim.socket.destroy();
    }
  }
}

/** The connections of the address that has the most of something: an address pays for all of its connections. */
function ofGreediest(connections: readonly Connection[], sizeOf: (connection: Connection) => number): Connection[] {
  const byAddress = new Map<string, number>();
  for (const one of connections) byAddress.set(one.address, (byAddress.get(one.address) ?? 0) + sizeOf(one));
  const most = Math.max(...byAddress.values());
  return connections.filter(({ address }) => byAddress.get(address) === most);
}
