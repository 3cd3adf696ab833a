import type { Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Handler } from '../kernel/http.ts';
import { configKey, Type } from '../plugins-sdk/define.ts';

const portKey = configKey(
  'server',
  'port',
  Type.Optional(Type.Integer({ minimum: 0, maximum: 65_535, description: 'Port; 0 takes a free one; default 3000' })),
);
const hostKey = configKey(
  'server',
  'host',
  Type.Optional(Type.String({ minLength: 1, description: 'Address to listen on; default 127.0.0.1' })),
);

/** The service's own keys are contributed like a plugin's. */
export const listener = {
  name: 'listener',
  budget: 'none',
  required: true,
  keys: [portKey, hostKey],
  setup: () => ({}),
} as const;

/** Where to listen. */
export interface Address {
  readonly port: number;
  readonly host: string;
}

/** The address that a config asks for. */
export function addressOf(config: Readonly<Record<string, unknown>>): Address {
  return { port: portKey.in(config) ?? 3000, host: hostKey.in(config) ?? '127.0.0.1' };
}

/** @throws Error that names the address and why it cannot be had. */
export function listen(server: Server, { port, host }: Address): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? 'the port is in use' : (error.code ?? error.message);
      reject(new Error(`cannot listen on ${host}:${port}: ${why}`));
    });
    server.listen(port, host, resolve);
  });
}

/** The URL of a server that listens. */
export function urlOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

/**
 * A handler whose every response ends with `close`. When a connection goes, node closes the response that it is sending,
 * but none of those behind it, which a client that pipelines its requests has asked for.
 */
export function closingAll(handle: Handler): Handler {
  const underWay = new WeakMap<Socket, Set<ServerResponse>>();
  const responsesOf = (socket: Socket): Set<ServerResponse> => {
    const known = underWay.get(socket);
    if (known !== undefined) return known;
    const responses = new Set<ServerResponse>();
    underWay.set(socket, responses);
    socket.once('close', () => {
      for (const response of responses) {
        if (response.socket !== null) continue;
        response.destroy();
        response.emit('close');
      }
    });
    return responses;
  };
  return (request, response) => {
    // One that has its socket already is not behind another.
    if (response.socket === null) {
      const responses = responsesOf(request.socket);
      responses.add(response);
      response.once('close', () => responses.delete(response));
    }
    handle(request, response);
  };
}

/**
 * Takes no more connections and resolves once all are closed. Connections without a request are closed at once.
 * @param requests those under way.
 */
export function closeWhenIdle(server: Server, requests: () => number): Promise<void> {
  // A client that pipelines one request after the other would keep its connection open.
  server.prependListener('request', (_, response) => {
    response.shouldKeepAlive = false;
  });
  // To node a connection that has never sent anything is not idle: without requests under way none has to wait.
  const sweep = setInterval(() => {
    if (requests() === 0) server.closeAllConnections();
    else server.closeIdleConnections();
  }, 50);
  return new Promise((resolve) => {
    server.close(() => {
      clearInterval(sweep);
      resolve();
    });
  });
}
