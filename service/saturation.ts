import type { ConnectionLimit, ConnectionLimits } from '../plugins-sdk/connection-limits.ts';
import type { Log } from '../plugins-sdk/log.ts';

/** Milliseconds in which one thing is said once. */
const QUIET_MS = 60_000;

/** Says that connections are refused: at once, and then how many, a line a minute. */
export class RefusedConnections {
  readonly #log: Log;
  readonly #limits: () => ConnectionLimits;
  readonly #counts = new Map<ConnectionLimit, number>();

  constructor(log: Log, limits: () => ConnectionLimits) {
    this.#log = log;
    this.#limits = limits;
  }

  add(limit: ConnectionLimit): void {
    const count = this.#counts.get(limit);
    this.#counts.set(limit, (count ?? 0) + 1);
    if (count !== undefined) return;
    this.#tell(limit);
    setTimeout(() => this.#sum(limit), QUIET_MS).unref();
  }

  #sum(limit: ConnectionLimit): void {
    const count = (this.#counts.get(limit) ?? 1) - 1;
    this.#counts.delete(limit);
    if (count > 0) this.#tell(limit, count);
  }

  #tell(limit: ConnectionLimit, further?: number): void {
    const fields = { limit: this.#limits()[limit], ...(further === undefined ? {} : { further }) };
    this.#log.warn(`connections refused: server.connections.${limit} is reached`, fields);
  }
}
