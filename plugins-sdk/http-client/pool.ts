import type { Call } from './call.ts';
import type { Connection } from './connection.ts';

/**
 * The connections to one origin, each lent to one call at a time.
 *
 * undici's own pools hide which connection a call is on. Then a call that gives up while connecting leaves its request
 * and the socket behind, and an upstream that accepts no connections makes them pile up.
 */
export class Pool {
  readonly connections = new Set<Connection>();
  readonly #idle: Connection[] = [];
  readonly #waiting = new Set<Call>();
  readonly #limit: number;
  readonly #open: () => Connection;
  readonly #emptied: () => void;

  constructor(limit: number, open: () => Connection, emptied: () => void) {
    this.#limit = limit;
    this.#open = open;
    this.#emptied = emptied;
  }

  /** Lends the call a connection, now or when its turn comes. */
  acquire(call: Call): void {
    const connection = this.#idle.pop() ?? (this.connections.size < this.#limit ? this.#add() : undefined);
    if (connection) call.run(connection);
    else this.#waiting.add(call);
  }

  /** Takes a call out of the queue. */
  leave(call: Call): void {
    this.#waiting.delete(call);
  }

  /** Takes back a connection whose exchange is complete. */
  release(connection: Connection): void {
    if (connection.usable) {
      connection.reused = true;
      this.#idle.push(connection);
      this.#serveNext();
    } else {
      this.discard(connection);
    }
  }

  /** Destroys a connection, and with it whatever still runs on it. */
  discard(connection: Connection): void {
    this.connections.delete(connection);
    connection.destroy();
    this.#serveNext();
    if (this.connections.size === 0) this.#emptied();
  }

  #add(): Connection {
    const connection = this.#open();
    this.connections.add(connection);
    connection.client.on('disconnect', () => this.#forgetIdle(connection));
    return connection;
  }

  #serveNext(): void {
    const [next] = this.#waiting;
    if (!next) return;
    this.#waiting.delete(next);
    this.acquire(next);
  }

  #forgetIdle(connection: Connection): void {
    const index = this.#idle.indexOf(connection);
    if (index < 0) return;
    this.#idle.splice(index, 1);
    this.discard(connection);
  }
}
