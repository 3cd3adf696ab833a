import { createServer, type Server, type ServerResponse } from 'node:http';
import type { Log } from '../../plugins-sdk/index.ts';

/** Of Prometheus's text format. */
const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

const PATH = '/metrics';

/** Where to listen. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

function refuse(
  response: ServerResponse,
  status: number,
  error: string,
  headers: Readonly<Record<string, string>> = {},
) {
  response.writeHead(status, { ...headers, 'Content-Type': 'application/json' }).end(JSON.stringify({ error }));
}

/** Serves a text at `GET /metrics`, and nothing else. */
export class MetricsServer {
  readonly #address: Address;
  readonly #log: Log;
  #server: Server | undefined;
  #starting: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(address: Address, log: Log) {
    this.#address = address;
    this.#log = log;
  }

  /** Listens, unless it does so already. @throws Error that names the address and why it cannot be had. */
  start(text: () => Promise<string>): Promise<void> {
    this.#starting ??= this.#listen(text);
    return this.#starting;
  }

  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      const server = this.#server;
      if (server === undefined) return resolve();
      // Whether or not it ever listened.
      server.close(() => resolve());
      server.closeAllConnections();
    });
    return this.#closing;
  }

  async #listen(text: () => Promise<string>): Promise<void> {
    const { host, port } = this.#address;
    const server = createServer((request, response) => {
      if (request.url?.split('?', 1)[0] !== PATH) return refuse(response, 404, 'Not Found');
      if (request.method !== 'GET') return refuse(response, 405, 'Method Not Allowed', { Allow: 'GET' });
      text().then(
        (body) => response.writeHead(200, { 'Content-Type': CONTENT_TYPE }).end(body),
        (error: unknown) => {
          this.#log.error('the metrics cannot be shown', { error: String(error) });
          refuse(response, 500, 'Internal server error');
        },
      );
    });
    // A few scrapers at a time, none of which may hold a connection for nothing.
    server.maxConnections = 32;
    server.headersTimeout = 5000;
    server.requestTimeout = 5000;
    server.timeout = 30_000;
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) => {
        const why = error.code === 'EADDRINUSE' ? 'the port is in use' : (error.code ?? error.message);
        reject(new Error(`cannot listen on ${host}:${port}: ${why}`));
      });
      server.listen(port, host, resolve);
    });
    this.#log.info(`metrics on ${urlOf(server)}${PATH}`);
  }
}

function urlOf(server: Server): string {
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the metrics server does not listen');
  const { address: host, port, family } = address;
  return `http://${family === 'IPv6' ? `[${host}]` : host}:${port}`;
}
