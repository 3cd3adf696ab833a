import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type ListenAddress, listen, surviveRefusals, urlOf } from '../../lib/http/listen.ts';
import { atMostEvery } from '../../lib/time.ts';
import { type HttpResponse, JsonText, type Log } from '../../plugins-sdk/index.ts';
import { type ConnectionLimit, limitConnections } from '../../plugins-sdk/observe.ts';

/** Milliseconds between two log lines on refused connections. */
const QUIET_MS = 60_000;

/** Makes the response of one page. */
export type Page = (request: IncomingMessage) => HttpResponse | Promise<HttpResponse>;
/** The pages by path. */
export type Pages = Readonly<Record<string, Page>>;

/** Deadlines of connections, in milliseconds. */
const DEADLINES = { headersTimeout: 5000, requestTimeout: 5000, connectionsCheckingInterval: 1000 };

/** Limits of connections: enough for a few scrapers and probes at a time. */
const CONNECTIONS = { max: 64, perAddress: 32 };

function send(response: ServerResponse, { status, headers = {}, body }: HttpResponse): void {
  const type = { 'Content-Type': 'application/json' };
  response.writeHead(status, { ...type, ...headers }).end(JsonText.is(body) ? body.json : body);
}

/** Makes the response with an error. */
export function refusal(status: number, error: string, headers = {}): HttpResponse {
  return { status, headers, body: JsonText.stringify({ error }) };
}

/** Serves a few pages by GET, on a port of its own. */
export class MetricsServer {
  readonly #address: ListenAddress;
  readonly #log: Log;
  /** The pages of each config in use; the latest answers. */
  readonly #pages = new Set<Pages>();
  readonly #server: Server;
  #listening: Promise<void> | undefined;

  constructor(address: ListenAddress, log: Log) {
    this.#address = address;
    this.#log = log;
    const server = createServer(DEADLINES, (request, response) => {
      void this.#answer(request).then((reply) => send(response, reply));
    });
    // Node bounds neither the requests that it reads ahead nor the answers that a client does not read.
    server.maxRequestsPerSocket = 1;
    const refused = atMostEvery(QUIET_MS, (limit: ConnectionLimit) =>
      log.warn('connections to the metrics refused', { [limit]: CONNECTIONS[limit] }),
    );
    limitConnections(server, () => CONNECTIONS, refused);
    surviveRefusals(server, (detail) => log.warn('connections to the metrics cannot be accepted', { detail }));
    // Closes idle connections.
    server.timeout = 30_000;
    this.#server = server;
  }

  /** Adds pages, and listens unless it does so already. @throws Error with the address and the reason why it cannot listen. */
  async start(pages: Pages): Promise<void> {
    this.#pages.add(pages);
    this.#listening ??= this.#listen();
    await this.#listening;
  }

  /** Removes a config's pages, so that another config's answer. */
  remove(pages: Pages): void {
    this.#pages.delete(pages);
  }

  /** Closes the server, even if it never listened. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #listen(): Promise<void> {
    await listen(this.#server, { ...this.#address, path: 'settings.metrics' });
    this.#log.info(`metrics on ${urlOf(this.#server)}/metrics`);
  }

  async #answer(request: IncomingMessage): Promise<HttpResponse> {
    const { url = '', method } = request;
    const path = url.split('?', 1)[0] ?? '';
    const pages = [...this.#pages].at(-1) ?? {};
    const page = Object.hasOwn(pages, path) ? pages[path] : undefined;
    if (page === undefined) return refusal(404, 'Not Found');
    if (method !== 'GET') return refusal(405, 'Method Not Allowed', { Allow: 'GET' });
    try {
      return await page(request);
    } catch (error) {
      this.#log.error(`${path} cannot be shown`, { error: String(error) });
      return refusal(500, 'Internal server error');
    }
  }
}
