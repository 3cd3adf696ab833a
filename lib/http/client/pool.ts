import type { Connection } from './connection.ts';
import { CLOSED_BY_PEER, codeOf } from './faults.ts';
import { IdleLifetime } from './idle-lifetime.ts';
import type { HttpProxy } from './proxies.ts';
import type { RequestFailureKind } from './request.ts';

export const CLIENT_CLOSED = 'the client is closed';

/** A call that wants a connection. */
interface Borrower {
  /** Whether its request may be sent again. */
  readonly isRepeatable: boolean;
  run(connection: Connection): void;
  fail(kind: RequestFailureKind, detail: string): void;
}

/**
 * The connections to one origin, each lent to one call at a time.
 *
 * undici's own pools hide which connection a call is on. With them an answer longer than announced was taken for whole, and a POST went
 * out on a connection that the server was closing.
 */
export class Pool {
  /** What each connection is lent to. */
  readonly #lent = new Map<Connection, Borrower | undefined>();
  /** The one that was used last is last. */
  readonly #idle: Connection[] = [];
  readonly #lifetime = new IdleLifetime();
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

  get isEmpty(): boolean {
    return this.#lent.size === 0;
  }

  /** Lends the call a connection, now or when its turn comes. */
  acquire(call: Borrower): void {
    const connection = this.#reusable(call) ?? (this.#lent.size < this.#limit ? this.#add() : undefined);
    if (connection === undefined) {
      this.#waiting.add(call);
    } else {
      this.#lent.set(connection, call);
      call.run(connection);
    }
  }

  /** Takes a call out of the queue. */
  leave(call: Borrower): void {
    this.#waiting.delete(call);
  }

  /** Takes back a connection whose exchange is complete. */
  release(connection: Connection): void {
    if (connection.usable) {
      connection.rest();
      this.#lent.set(connection, undefined);
      this.#idle.push(connection);
    } else this.#drop(connection);
    this.#serveNext();
  }

  /** Destroys a connection, and with it whatever still runs on it. */
  discard(connection: Connection): void {
    this.#drop(connection);
    this.#serveNext();
  }

  /** Ends all calls, and resolves when all sockets are closed. */
  async close(): Promise<void> {
    const connections = [...this.#lent.keys()];
    for (const call of [...this.#waiting, ...this.#lent.values()]) call?.fail('aborted', CLIENT_CLOSED);
    await Promise.all(connections.map((connection) => connection.destroy()));
  }

  /** A request that must not be repeated never uses a connection that the server may be about to close. */
  #reusable(call: Borrower): Connection | undefined {
    const last = this.#idle.at(-1);
    if (last === undefined || call.isRepeatable || this.#lifetime.covers(last.idleFor ?? 0)) return this.#idle.pop();
    if (this.#lent.size === this.#limit) {
      this.#idle.pop();
      this.#drop(last);
    }
    // In the turn after the next, when node has looked at its sockets: until then one that was closed seems to be open.
    setImmediate(() => setImmediate(() => this.#learn()));
    return undefined;
  }

  #learn(): void {
    const [oldest] = this.#idle;
    if (oldest?.usable) this.#lifetime.survived(oldest.idleFor ?? 0);
  }

  #add(): Connection {
    const connection = this.#open();
    connection.client.on('disconnect', (_origin, _targets, error) => this.#disconnected(connection, error));
    return connection;
  }

  #drop(connection: Connection): void {
    this.#lent.delete(connection);
    connection.destroy();
  }

  #serveNext(): void {
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#waiting.delete(next);
    this.acquire(next);
  }

  #disconnected(connection: Connection, error: Error): void {
    const { idleFor } = connection;
    if (idleFor !== undefined && CLOSED_BY_PEER.has(codeOf(error))) this.#lifetime.ended(idleFor);
    const index = this.#idle.indexOf(connection);
    if (index < 0) return;
    this.#idle.splice(index, 1);
    this.discard(connection);
  }
}
