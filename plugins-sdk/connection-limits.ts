import type { Server, Socket } from 'node:net';
import { clientKey } from '../lib/http/client-address.ts';

/** How many connections a server holds at most. */
export interface ConnectionLimits {
  /** In all. */
  readonly max: number;
  /** Of one client address; IPv6 addresses of one /64 count as one. */
  readonly perAddress: number;
}

/** The limit that was reached. */
export type ConnectionLimit = keyof ConnectionLimits;

/**
 * Closes connections beyond the limits as soon as they are accepted. The one that has sent nothing for longest goes: of the same address or,
 * where all are too many, of any. Else the one goes that has just come. Those that have sent something stay.
 * @param limits asked for each connection.
 * @param refused told of each connection that was closed.
 */
export function limitConnections(
  server: Server,
  limits: () => ConnectionLimits,
  refused: (limit: ConnectionLimit) => void,
): void {
  const all = new Group();
  const byAddress = new Map<string, Group>();
  const known = new WeakSet<Socket>();
  const forget = (socket: Socket, key: string) => {
    const ofAddress = byAddress.get(key);
    all.delete(socket);
    ofAddress?.delete(socket);
    if (ofAddress?.size === 0) byAddress.delete(key);
  };
  server.prependListener('connection', (socket: Socket) => {
    // A server that takes a socket up again after an upgrade announces it anew.
    if (known.has(socket)) return;
    const key = clientKey(socket.remoteAddress ?? '');
    const ofAddress = byAddress.get(key) ?? new Group();
    const { max, perAddress } = limits();
    const reached = ofAddress.size >= perAddress ? 'perAddress' : all.size >= max ? 'max' : undefined;
    if (reached !== undefined) {
      refused(reached);
      const silent = (reached === 'max' ? all : ofAddress).firstSilent();
      (silent ?? socket).destroy();
      if (silent === undefined) return;
    }
    known.add(socket);
    all.add(socket);
    ofAddress.add(socket);
    byAddress.set(key, ofAddress);
    socket.once('close', () => forget(socket, key));
  });
}

/** Connections that count together. */
class Group {
  size = 0;
  /** Those that had sent nothing when they were last looked at, in the order in which they came. */
  readonly #silent = new Set<Socket>();

  add(socket: Socket): void {
    this.size += 1;
    this.#silent.add(socket);
  }

  delete(socket: Socket): void {
    this.size -= 1;
    this.#silent.delete(socket);
  }

  /** The connection that has sent nothing for longest. One that has sent something is checked once. */
  firstSilent(): Socket | undefined {
    for (const socket of this.#silent) {
      if (socket.bytesRead === 0 && !socket.destroyed) return socket;
      this.#silent.delete(socket);
    }
    return undefined;
  }
}
