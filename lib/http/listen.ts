import type { AddressInfo, Server } from 'node:net';
import { atMostEvery } from '../time.ts';

/** The address on which a server listens. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** Config path of `host` and `port`, for the text of an error. */
  readonly path?: string;
}

/** Starts to listen. @throws Error that names the address, why listening failed, and what to change. */
export function listen(server: Server, { port, host, path }: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const cure = path === undefined ? '' : cureOf(error.code, path);
      const why = error.code === 'EADDRINUSE' ? 'the port is in use' : (error.code ?? error.message);
      reject(new Error(`cannot listen on ${host}:${port}: ${why}${cure}`));
    });
    // Connections that may wait to be accepted; the system may allow fewer. A client that finds no room tries again after seconds.
    server.listen({ port, host, backlog: 4096 }, resolve);
  });
}

/** Least milliseconds between two reports that connections cannot be accepted. */
const QUIET_MS = 60_000;

/**
 * Keeps a listening server alive when the system cannot accept a connection, for example for lack of memory.
 * @param told called with the system's message, at most once in {@link QUIET_MS}.
 */
export function surviveRefusals(server: Server, told: (detail: string) => void): void {
  const tell = atMostEvery(QUIET_MS, told);
  server.on('error', ({ message }) => {
    if (server.listening) tell(message);
  });
}

function cureOf(code: string | undefined, path: string): string {
  if (code === 'EADDRINUSE') return `: end what has it, or set another ${path}.port`;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `: set ${path}.host to an address of this machine`;
  if (code !== 'EADDRNOTAVAIL') return '';
  return `: no interface of this machine has the address; set ${path}.host to one that it has, or to 0.0.0.0 for all`;
}

/** Returns the URL of a listening server. */
export function urlOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
