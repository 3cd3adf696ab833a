import type { Socket } from 'node:net';
import type { Client } from 'undici';
import { undici } from '../../process/lazy.ts';
import type { Connect } from './connect.ts';
import type { HttpProxy } from './proxies.ts';

/** Milliseconds that any server is taken to keep an idle connection: enough to use it again right after an answer. */
const SURELY_KEPT_MS = 20;

/** The undici client that speaks HTTP on one keep-alive socket at a time: it opens another one where that has ended. */
export class Connection {
  readonly client: Client;
  #socket: Socket | undefined;
  #surplus: Error | undefined;
  #restingSince: number | undefined;

  constructor(origin: string, connect: Connect) {
    const opening = (socket: Socket) => {
      this.#socket = socket;
      this.#restingSince = undefined;
    };
    this.client = new (undici().Client)(origin, {
      connect: (target, callback) =>
        void connect(target, opening).then(
          (socket) => {
            // What undici puts back came after an answer that ends the connection; such servers may add line ends.
            socket.unshift = (rest) => {
              if (/[^\r\n]/.test(String(rest))) this.#surplus = new (undici().errors.SocketError)('bad response');
            };
            callback(null, socket);
          },
          (error) => callback(error, null),
        ),
      // The call's deadline covers both.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /** Whether an exchange was complete on the present socket. */
  get isReused(): boolean {
    return this.#restingSince !== undefined;
  }

  /** What broke the socket, other than undici closing it in order. */
  get fault(): Error | undefined {
    const error = this.#surplus ?? this.#socket?.errored;
    return error && !(error instanceof undici().errors.InformationalError) ? error : undefined;
  }

  /** Called when an exchange is complete. */
  rest(): void {
    this.#restingSince = performance.now();
  }

  /** Whether the server may be closing the socket just now. */
  get isDoubtful(): boolean {
    return performance.now() - (this.#restingSince ?? 0) > SURELY_KEPT_MS;
  }

  /** Resolves when the socket is closed. */
  async destroy(): Promise<void> {
    const closed = this.client.destroy();
    // undici leaves a connecting socket alone; with an error it tells the connector, which then lets go.
    this.#socket?.destroy(new (undici().errors.InformationalError)('abandoned'));
    await closed;
  }
}

/** A call that wants a connection. */
interface Borrower {
  /** Whether its request may be sent again. */
  readonly isRepeatable: boolean;
  run(connection: Connection): void;
  fail(kind: 'aborted', detail: string): void;
}

export const CLIENT_CLOSED = 'the client is closed';

/**
 * The connections to one origin, each lent to one call at a time. With undici's own pools nothing tells on which connection a
 * call is: an answer longer than announced is taken for whole, and a request that is refused as invalid blocks a connection.
 */
export class Pool {
  readonly #all = new Set<Connection>();
  /** The one that was used last is last. */
  readonly #idle: Connection[] = [];
  readonly #waiting = new Set<Borrower>();
  readonly #limit: number;
  readonly #open: () => Connection;
  /** The proxy that reads its requests and sends them on. */
  readonly forwarder: HttpProxy | undefined;

  constructor(limit: number, open: () => Connection, forwarder?: HttpProxy) {
    this.#limit = limit;
    this.#open = open;
    this.forwarder = forwarder;
  }

  /** Whether no call is under way. */
  get isUnused(): boolean {
    return this.#idle.length === this.#all.size;
  }

  /** Lends the call a connection, now or when its turn comes. */
  acquire(call: Borrower): void {
    const connection = this.#idleFor(call) ?? (this.#all.size < this.#limit ? this.#open() : undefined);
    if (connection === undefined) {
      this.#waiting.add(call);
      return;
    }
    this.#all.add(connection);
    call.run(connection);
  }

  /** Takes a call out of the queue. */
  leave(call: Borrower): void {
    this.#waiting.delete(call);
  }

  /** Takes back a connection whose exchange is complete. */
  release(connection: Connection): void {
    connection.rest();
    this.#idle.push(connection);
    this.#serveNext();
  }

  /** Destroys a connection, and with it whatever still runs on it. */
  discard(connection: Connection): void {
    this.#drop(connection);
    this.#serveNext();
  }

  /** Ends the calls in the queue, then those under way. Resolves when all sockets are closed. */
  async close(): Promise<void> {
    for (const call of this.#waiting) call.fail('aborted', CLIENT_CLOSED);
    await Promise.all(Array.from(this.#all, (connection) => connection.destroy()));
  }

  /** A request that must not be repeated never uses a socket that the server may be about to close. */
  #idleFor({ isRepeatable }: Borrower): Connection | undefined {
    const last = this.#idle.pop();
    if (last === undefined || isRepeatable || !last.isDoubtful) return last;
    this.#drop(last);
    return undefined;
  }

  #drop(connection: Connection): void {
    this.#all.delete(connection);
    void connection.destroy();
  }

  #serveNext(): void {
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#waiting.delete(next);
    this.acquire(next);
  }
}
