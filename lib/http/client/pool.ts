import type { Socket } from 'node:net';
import type { Client } from 'undici';
import { undiciClient, undiciErrors } from '../../process/packages.ts';
import type { Connect } from './connect.ts';
import type { HttpProxy } from './proxies.ts';

/** Milliseconds for which any server is assumed to keep an idle connection: enough to reuse it right after an answer. */
const SURELY_KEPT_MS = 20;

/** Tells undici that a socket is closed on purpose. */
const abandoned = () => new (undiciErrors().InformationalError)('abandoned');

/** An undici client that uses one keep-alive socket at a time. When that has ended, it opens another. */
export class Connection {
  readonly client: Client;
  #socket: Socket | undefined;
  #surplus: Error | undefined;
  /** When the latest exchange on the current socket was complete; `undefined` before that. */
  restingSince: number | undefined;

  constructor(origin: string, connect: Connect) {
    const opening = (socket: Socket) => {
      this.#socket = socket;
      this.restingSince = undefined;
    };
    this.client = new (undiciClient())(origin, {
      connect: (target, callback) =>
        void connect(target, opening).then(
          (socket) => {
            // undici puts back bytes that came after an answer which ends the connection. Extra line ends are harmless there.
            socket.unshift = (rest) => {
              if (/[^\r\n]/.test(String(rest))) this.#surplus = new (undiciErrors().SocketError)('bad response');
            };
            callback(null, socket);
          },
          (error) => callback(error, null),
        ),
      // The timeout of the call covers both.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /** Whether an exchange has completed on the current socket. */
  get isReused(): boolean {
    return this.restingSince !== undefined;
  }

  /** Closes a socket that the server may be about to close, so that the next exchange opens another. */
  renew(): void {
    if (performance.now() - (this.restingSince ?? 0) < SURELY_KEPT_MS) return;
    this.#socket?.destroy(abandoned());
    this.restingSince = undefined;
  }

  /** The error that broke the socket; `undefined` if undici closed it in order. */
  get fault(): Error | undefined {
    const error = this.#surplus ?? this.#socket?.errored;
    return error && !(error instanceof undiciErrors().InformationalError) ? error : undefined;
  }

  /** Closes the socket, and resolves when it is closed. */
  async destroy(): Promise<void> {
    const closed = this.client.destroy();
    // undici does not close a socket that is connecting. Destroying it with an error makes undici's connector give up.
    this.#socket?.destroy(abandoned());
    await closed;
  }
}

/** A call that needs a connection. */
interface Borrower {
  run(connection: Connection): void;
  fail(kind: 'aborted', detail: string): void;
}

export const CLIENT_CLOSED = 'the client is closed';

/**
 * The connections to one origin, each lent to one call at a time. undici's own pools do not show which connection a call uses.
 * With them an answer longer than announced would pass as complete, and a request refused as invalid would block a connection.
 */
export class Pool {
  readonly #all = new Set<Connection>();
  /** Idle connections; the most recently used is last. */
  readonly #idle: Connection[] = [];
  readonly #waiting = new Set<Borrower>();
  readonly #limit: number;
  readonly #open: () => Connection;
  /** The proxy that forwards the requests to this origin, if its URLs are http. */
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

  /** Lends the call a connection, at once or when one is free. */
  acquire(call: Borrower): void {
    const connection = this.#idle.pop() ?? (this.#all.size < this.#limit ? this.#open() : undefined);
    if (connection === undefined) return void this.#waiting.add(call);
    this.#all.add(connection);
    call.run(connection);
  }

  /** Takes a call out of the queue. */
  leave(call: Borrower): void {
    this.#waiting.delete(call);
  }

  /** Takes back a connection whose exchange is complete. */
  release(connection: Connection): void {
    connection.restingSince = performance.now();
    this.#idle.push(connection);
    this.#serveNext();
  }

  /** Destroys a connection, and with it any exchange that still runs on it. */
  discard(connection: Connection): void {
    this.#all.delete(connection);
    void connection.destroy();
    this.#serveNext();
  }

  /** Ends the calls in the queue, then those under way. Resolves when all sockets are closed. */
  async close(): Promise<void> {
    for (const call of this.#waiting) call.fail('aborted', CLIENT_CLOSED);
    await Promise.all(Array.from(this.#all, (connection) => connection.destroy()));
  }

  #serveNext(): void {
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#waiting.delete(next);
    this.acquire(next);
  }
}
