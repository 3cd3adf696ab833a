import type { ConnectionLimit, ConnectionLimits } from '../plugins-sdk/connection-limits.ts';
import type { Log } from '../plugins-sdk/log.ts';
import { hasDescriptor } from './descriptors.ts';

/** Milliseconds in which one thing is said once. */
const QUIET_MS = 60_000;
/** Milliseconds between two looks at file descriptors. */
const POLL_INTERVAL_MS = 1000;

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

/** Says when there is no file descriptor left, which neither clients nor upstream calls get to hear. @returns what ends it. */
export function watchDescriptors(log: Log, connections: () => number): () => void {
  let saidAt = Number.NEGATIVE_INFINITY;
  const timer = setInterval(() => {
    if (performance.now() - saidAt < QUIET_MS || hasDescriptor()) return;
    saidAt = performance.now();
    log.error('no file descriptor is left (EMFILE): new connections and upstream calls fail', {
      connections: connections(),
    });
  }, POLL_INTERVAL_MS).unref();
  return () => clearInterval(timer);
}
