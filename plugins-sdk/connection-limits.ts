import type { Server, Socket } from 'node:net';
import { clientKey } from '../lib/http/client-address.ts';

/** The most connections that a server holds. */
export interface ConnectionLimits {
  /** Most connections in all. */
  readonly max: number;
  /** Most connections of one client address; IPv6 addresses of one /64 count as one. */
  readonly perAddress: number;
}

/** The limit that was reached. */
export type ConnectionLimit = keyof ConnectionLimits;

/**
 * Closes a connection whenever a new one exceeds a limit. The oldest connection that has sent nothing is closed: one of the same
 * address, or one of any address if `max` is reached. If all have sent something, the new connection is closed.
 * @param limits returns the limits; called for each new connection.
 * @param refused called for each connection that is closed.
 */
export function limitConnections(
  server: Server,
  limits: () => ConnectionLimits,
  refused: (limit: ConnectionLimit) => void,
): void {
  const all = newGroup();
  const byAddress = new Map<string, Group>();
  server.prependListener('connection', (socket: Socket) => {
    // A server emits `connection` again for a socket that it takes back after an upgrade.
    if (all.sockets.has(socket)) return;
    const key = clientKey(socket.remoteAddress ?? '');
    const ofAddress = byAddress.get(key) ?? newGroup();
    const { max, perAddress } = limits();
    const reached = ofAddress.sockets.size >= perAddress ? 'perAddress' : all.sockets.size >= max ? 'max' : undefined;
    if (reached !== undefined) {
      refused(reached);
      const silent = firstOf(reached === 'max' ? all.silent : ofAddress.silent);
      (silent ?? socket).destroy();
      if (silent === undefined) return;
    }
    const sets = [all.sockets, all.silent, ofAddress.sockets, ofAddress.silent];
    for (const set of sets) set.add(socket);
    byAddress.set(key, ofAddress);
    socket.once('close', () => {
      for (const set of sets) set.delete(socket);
      if (ofAddress.sockets.size === 0) byAddress.delete(key);
    });
  });
}

/** Connections that share a limit. */
interface Group {
  readonly sockets: Set<Socket>;
  /** Connections that had sent nothing when last checked, oldest first. */
  readonly silent: Set<Socket>;
}

const newGroup = (): Group => ({ sockets: new Set(), silent: new Set() });

/** Returns the oldest connection that has sent nothing. One that has sent something is never checked again. */
function firstOf(silent: Set<Socket>): Socket | undefined {
  for (const socket of silent) {
    if (socket.bytesRead === 0 && !socket.destroyed) return socket;
    silent.delete(socket);
  }
  return undefined;
}
