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
  const all = new Group();
  const byAddress = new Map<string, Group>();
  server.prependListener('connection', (socket: Socket) => {
    // A server emits `connection` again for a socket that it takes back after an upgrade.
    if (all.sockets.has(socket)) return;
    const key = clientKey(socket.remoteAddress ?? '');
    const ofAddress = byAddress.get(key) ?? new Group();
    const { max, perAddress } = limits();
    const reached = ofAddress.sockets.size >= perAddress ? 'perAddress' : all.sockets.size >= max ? 'max' : undefined;
    if (reached !== undefined) {
      refused(reached);
      const silent = (reached === 'max' ? all : ofAddress).firstSilent();
      (silent ?? socket).destroy();
      if (silent === undefined) return;
    }
    all.add(socket);
    ofAddress.add(socket);
    byAddress.set(key, ofAddress);
    socket.once('close', () => {
      all.delete(socket);
      ofAddress.delete(socket);
      if (ofAddress.sockets.size === 0) byAddress.delete(key);
    });
  });
}

/** Connections that share a limit. */
class Group {
  readonly sockets = new Set<Socket>();
  /** Connections that had sent nothing when last checked, oldest first. */
  readonly #silent = new Set<Socket>();

  add(socket: Socket): void {
    this.sockets.add(socket);
    this.#silent.add(socket);
  }

  delete(socket: Socket): void {
    this.sockets.delete(socket);
    this.#silent.delete(socket);
  }

  /** Returns the oldest connection that has sent nothing. One that has sent something is never checked again. */
  firstSilent(): Socket | undefined {
    for (const socket of this.#silent) {
      if (socket.bytesRead === 0 && !socket.destroyed) return socket;
      this.#silent.delete(socket);
    }
    return undefined;
  }
}
