import type { Server, Socket } from 'node:net';
import { clientKey } from './client-address.ts';

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
 * Closes connections beyond the limits as soon as they are accepted: the one that has sent nothing for longest, be it of the
 * same address or, where all are too many, of any; else the one that has just come. Those that have sent something stay.
 *
 * @param limits asked for each connection.
 * @param refused told of each connection that was closed.
 */
export function limitConnections(
  server: Server,
  limits: () => ConnectionLimits,
  refused: (limit: ConnectionLimit) => void,
): void {
  const all = new Set<Socket>();
  const byAddress = new Map<string, Set<Socket>>();
  const forget = (socket: Socket, key: string) => {
    const ofAddress = byAddress.get(key);
    all.delete(socket);
    ofAddress?.delete(socket);
    if (ofAddress?.size === 0) byAddress.delete(key);
  };
  server.prependListener('connection', (socket: Socket) => {
    // A server that takes a socket up again after an upgrade announces it anew.
    if (all.has(socket)) return;
    const key = clientKey(socket.remoteAddress ?? '');
    const ofAddress = byAddress.get(key) ?? new Set();
    const { max, perAddress } = limits();
    const reached = ofAddress.size >= perAddress ? 'perAddress' : all.size >= max ? 'max' : undefined;
    if (reached !== undefined) {
      refused(reached);
      const silent = firstSilent(reached === 'max' ? all : ofAddress);
      (silent ?? socket).destroy();
      if (silent === undefined) return;
    }
    all.add(socket);
    byAddress.set(key, ofAddress.add(socket));
    socket.once('close', () => forget(socket, key));
  });
}

function firstSilent(sockets: Iterable<Socket>): Socket | undefined {
  for (const socket of sockets) if (socket.bytesRead === 0 && !socket.destroyed) return socket;
  return undefined;
}
