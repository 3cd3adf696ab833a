/** Whoever relies on a connection counts on no more than this part of the time that the server was seen to keep one… */
const PART = 1 / 2;
/** …less the milliseconds by which either side may be late to notice what the other did. */
const LAG_MS = 10;

/** Milliseconds that any server is taken to keep a connection: enough to use it again right after an answer. */
const ASSUMED_LIFETIME_MS = 30;

/**
 * How long a server was seen to keep idle connections. Few servers announce it. A request that goes out while the server closes
 * its connection is lost, and nobody can tell whether it was read (RFC 9112, section 9.5).
 */
export class IdleLifetime {
  #seen = ASSUMED_LIFETIME_MS;

  /** A connection was still open after so many idle milliseconds. */
  survived(milliseconds: number): void {
    this.#seen = Math.max(this.#seen, milliseconds);
  }

  /** The server closed a connection after so many idle milliseconds. */
  ended(milliseconds: number): void {
    this.#seen = Math.min(this.#seen, milliseconds);
  }

  /** Whether a connection that has been idle for so many milliseconds can be expected to stay open for now. */
  covers(milliseconds: number): boolean {
    return milliseconds <= this.#seen * PART - LAG_MS;
  }
}
