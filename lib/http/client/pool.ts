import type { Connection } from './connection.ts';
import { CLOSED_BY_PEER, codeOf } from './faults.ts';
import { IdleLifetime } from './idle-lifetime.ts';
import type { HttpProxy } from './proxies.ts';

/** Who wants a connection. */
interface Borrower {
  /** Whether its request may be sent again. */
  readonly isRepeatable: boolean;
  run(connection: Connection): void;
}

/**
 * The connections to one origin, each lent to one call at a time.
 *
 * undici's own pools hide which connection a call is on. A call that gives up while connecting ends with the connection's
 * timeout there, which all calls share. With 5 s for that, a call of 200 ms to a server that accepts nothing took 5.6 s.
 */
export class Pool {
  readonly connections = new Set<Connection>();
  /** The one that was used last is last. */
  readonly #idle: Connection[] = [];
  readonly #lifetime = new IdleLifetime();
  readonly #waiting = new Set<Borrower>();
  readonly #limit: number;
  readonly #open: () => Connection;

  /** The proxy that reads its requests and sends them on. */
  readonly forwarder: HttpProxy | undefined;

  constructor(limit: number, open: () => Connection, forwarder?: HttpProxy) {
    this.forwarder = forwarder;
    this.#limit = limit;
    this.#open = open;
  }

  /** Lends the call a connection, now or when its turn comes. */
  acquire(call: Borrower): void {
    const connection = this.#reusable(call) ?? (this.connections.size < this.#limit ? this.#add() : undefined);
    if (connection) call.run(connection);
    else this.#waiting.add(call);
  }

  /** Takes a call out of the queue. */
  leave(call: Borrower): void {
    this.#waiting.delete(call);
  }

  /** Takes back a connection whose exchange is complete. */
  release(connection: Connection): void {
    if (connection.usable) {
      connection.rest();
      this.#idle.push(connection);
      this.#serveNext();
    } else {
      this.discard(connection);
    }
  }

  /** Destroys a connection, and with it whatever still runs on it. */
  discard(connection: Connection): void {
    this.#drop(connection);
    this.#serveNext();
  }

  /** A request that must not be repeated never uses a connection that the server may be about to close. */
  #reusable(call: Borrower): Connection | undefined {
    const last = this.#idle.at(-1);
    if (last === undefined || call.isRepeatable || this.#lifetime.covers(last.idleFor ?? 0)) return this.#idle.pop();
    if (this.connections.size === this.#limit) {
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
    this.connections.add(connection);
    connection.client.on('disconnect', (_origin, _targets, error) => this.#disconnected(connection, error));
    return connection;
  }

  #drop(connection: Connection): void {
    this.connections.delete(connection);
    connection.destroy();
  }

  #serveNext(): void {
    const [next] = this.#waiting;
    if (!next) return;
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
