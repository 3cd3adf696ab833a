import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';

/** Node's deadlines, in milliseconds. */
const DEADLINES = {
  /** For the headers of a request. */
  headersTimeout: 10_000,
  /** For a whole request. */
  requestTimeout: 30_000,
  /** For the next request on a connection: longer than the 60 seconds of nginx and AWS, since the client must close first. */
  keepAliveTimeout: 75_000,
  /** Between two checks of these deadlines. */
  connectionsCheckingInterval: 1000,
};

/** Bounds on the requests and unread answers of clients. */
const BOUNDS = {
  /** Most requests under way on one connection. */
  requests: 16,
  /** Milliseconds without progress after which a client that reads nothing of its answer loses its connection. */
  stall: 30_000,
  /** Most unread bytes of all answers together; beyond, connections are closed. */
  unread: 64 * 1024 * 1024,
};

/** Milliseconds between two checks of unread bytes. */
const LOOK_INTERVAL_MS = 500;
/** Milliseconds in which a new client may still send its first byte when the server stops. */
const FIRST_BYTE_TIMEOUT_MS = 1000;

/** Creates an HTTP server with {@link DEADLINES}. */
export function createHttpServer(): Server {
  // `isAmbiguous` refuses a missing `Host`, too. Node bounds the bytes of headers; a `maxHeadersCount` would silently drop some.
  return Object.assign(createServer({ ...DEADLINES, requireHostHeader: false }), { maxHeadersCount: 0 });
}

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** One client's connection. */
interface Connection {
  /** When it was last begun to be read: a stop lets those wait that it accepts. */
  since: number;
  /** The client's address, kept because a destroyed socket has none. */
  readonly address: string | undefined;
  /** Responses under way. It is a list, since the old tables of a `Set` would keep responses alive. */
  readonly underWay: ServerResponse[];
  /** Whether it ends with the answer to its latest request: no further request begins. */
  isEnding?: boolean;
}

/** Bounds a server's connections: node bounds neither the requests that it reads ahead nor the bytes that clients do not read. */
export class Connections {
  readonly #open = new Map<Socket, Connection>();
  readonly #bounds: typeof BOUNDS;
  readonly #handle: Handle;
  #isDraining = false;

  /**
   * @param handle called with each request that may begin; must end its response.
   * @param bounds replace the defaults.
   */
  constructor(server: Server, handle: Handle, bounds: Partial<typeof BOUNDS> = {}) {
    this.#bounds = { ...BOUNDS, ...bounds };
    this.#handle = handle;
    server.on('connection', (socket: Socket) => this.#add(socket));
    server.on('request', (request, response) => this.#begin(request, response));
    // Only `100-continue` has a meaning. Any other expectation is ignored instead of refused with 417 (RFC 9110, section 10.1.1).
    server.on('checkExpectation', (request, response) => this.#begin(request, response));
    const timer = setInterval(() => this.#look(), LOOK_INTERVAL_MS).unref();
    server.once('close', () => clearInterval(timer));
  }

  /** Makes every connection end with the answer to its latest request, later connections too. */
  drain(): void {
    this.#isDraining = true;
    for (const connection of this.#open.values()) end(connection);
  }

  /** Closes connections whose clients have sent nothing so far, except new ones. */
  closeSilent(): void {
    const before = performance.now() - FIRST_BYTE_TIMEOUT_MS;
    for (const [socket, { since }] of this.#open) if (socket.bytesRead === 0 && since < before) socket.destroy();
  }

  closeAll(): void {
    for (const socket of this.#open.keys()) socket.destroy();
  }

  #add(socket: Socket): void {
    const connection: Connection = { since: performance.now(), address: socket.remoteAddress, underWay: [] };
    this.#open.set(socket, connection);
    if (this.#isDraining) socket.on('resume', () => (connection.since = performance.now()));
    socket.once('close', () => {
      this.#open.delete(socket);
      // Node closes only the response that it is sending, not those queued behind it.
      for (const response of [...connection.underWay]) if (response.socket === null) response.destroy().emit('close');
    });
  }

  #begin(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const connection = this.#open.get(socket);
    if (connection === undefined || socket.destroyed || connection.isEnding) return;
    if (connection.underWay.length === this.#bounds.requests) {
      socket.destroy();
      this.#spread(connection.address);
      return;
    }
    connection.underWay.push(response);
    response.on('close', () => connection.underWay.splice(connection.underWay.indexOf(response), 1));
    // Node drops requests that are pipelined behind an upgrade.
    if (this.#isDraining || request.headers.upgrade !== undefined) end(connection);
    if (isAmbiguous(request)) refuse(response);
    else this.#handle(request, response);
  }

  /**
   * Reads each connection of an address in a turn of its own, so that other clients are served in between. Node reads all
   * requests of a chunk even when their connection is destroyed, and other connections of that client may hold as many.
   */
  async #spread(address: string | undefined): Promise<void> {
    const own = [...this.#open].filter(([socket, one]) => one.address === address && !socket.isPaused());
    const sockets = own.map(([socket]) => socket);
    for (const socket of sockets) socket.pause();
    for (const socket of sockets) {
      await setImmediate();
      socket.resume();
    }
  }

  /** Sets timeouts for clients that read nothing, and closes connections while all unread bytes together exceed the bound. */
  #look(): void {
    const { stall, unread } = this.#bounds;
    let all = 0;
    const waiting: { readonly socket: Socket; readonly bytes: number }[] = [];
    for (const [socket, { underWay }] of this.#open) {
      let bytes = socket.writableLength;
      // Node's socket timeout starts again at progress within a long write, too.
      if (bytes > 0 && socket.timeout !== stall) socket.setTimeout(stall);
      else if (bytes === 0 && socket.timeout === stall) socket.setTimeout(0);
      for (const response of underWay) if (response.socket === null) bytes += response.writableLength;
      if (bytes > 0) waiting.push({ socket, bytes });
      all += bytes;
    }
    for (const { socket, bytes } of waiting.sort((a, b) => b.bytes - a.bytes)) {
      if (all <= unread) return;
      socket.destroy();
      all -= bytes;
    }
  }
}

/** Whether `Host` is missing or repeated: a proxy may have used another one than this service would (RFC 9112, section 3.2). */
function isAmbiguous({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let hosts = 0;
  // Names stand at even places. Most differ from `Host` in length already.
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts > 1 || (hosts === 0 && httpVersion === '1.1');
}

/** Refuses a request just as node refuses bytes that are no HTTP. */
function refuse(response: ServerResponse): void {
  response.sendDate = false;
  response.useChunkedEncodingByDefault = false;
  response.writeHead(400, { Connection: 'close' }).end();
}

/** Makes a connection end with the answer to its latest request, unless that answer has begun. */
function end(connection: Connection): void {
  const latest = connection.underWay.at(-1);
  if (latest === undefined || latest.headersSent) return;
  latest.shouldKeepAlive = false;
  connection.isEnding = true;
}
