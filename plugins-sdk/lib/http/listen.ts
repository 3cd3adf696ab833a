import type { AddressInfo, Server } from 'node:net';

/** Where a server listens. */
export interface Address {
  readonly host: string;
  readonly port: number;
  /** Whether a worker does not share it with the others. */
  readonly exclusive?: boolean;
}

/** @throws Error that names the address and why it cannot be had. */
export function listen(server: Server, { port, host, exclusive = false }: Address): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? 'the port is in use' : (error.code ?? error.message);
      reject(new Error(`cannot listen on ${host}:${port}: ${why}`));
    });
    server.listen({ port, host, exclusive }, resolve);
  });
}

/** The URL of a server that listens. */
export function urlOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
