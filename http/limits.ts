import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';

/** Milliseconds. */
const DEADLINES = {
  /** For the headers of a request, and for all of it. */
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  /** For the next request of a connection: longer than nginx and AWS keep one (60 seconds), since the client must close first. */
  keepAliveTimeout: 75_000,
  /** Between two looks at these deadlines. */
  connectionsCheckingInterval: 1000,
};

/** What clients may have under way. */
const BOUNDS = {
  /** Requests of one connection that are answered at a time. */
  requests: 16,
  /** Milliseconds in which a client must take something of an answer. */
  stall: 30_000,
  /** Bytes of all answers that clients have not taken; beyond, connections are closed. */
  unread: 64 * 1024 * 1024,
};

/** Milliseconds between two looks at what clients have not taken. */
const LOOK_INTERVAL_MS = 500;
/** Milliseconds that a client has for its first byte when the server stops: one that is new may be slow. */
const FIRST_BYTE_TIMEOUT_MS = 1000;

/** A server with node's own deadlines. */
export function createHttpServer(): Server {
  // `isAmbiguous` refuses a missing host as it does several. Node bounds headers by their bytes; it would drop those beyond a count.
  return Object.assign(createServer({ ...DEADLINES, requireHostHeader: false }), { maxHeadersCount: 0 });
}

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** One client's connection. */
interface Connection {
  readonly since: number;
  /** Of the client; a socket that is destroyed does not tell it any more. */
  readonly address: string | undefined;
  /** A list: dead tables of a `Set` would keep the responses that were in it. */
  readonly underWay: ServerResponse[];
  latest?: ServerResponse;
  /** Whether its last answer is known: no request behind it begins. */
  isEnding?: boolean;
}

/** The connections of a server: node bounds neither the requests that it reads ahead nor what is left unread. */
export class Connections {
  readonly #open = new Map<Socket, Connection>();
  readonly #bounds: typeof BOUNDS;
  readonly #handle: Handle;
  #isDraining = false;
  /** Connections that were accepted so far. */
  accepted = 0;

  /**
   * @param handle gets each request that may begin, and must end its response.
   * @param bounds instead of the usual ones.
   */
  constructor(server: Server, handle: Handle, bounds: Partial<typeof BOUNDS> = {}) {
    this.#bounds = { ...BOUNDS, ...bounds };
    this.#handle = handle;
    server.on('connection', (socket: Socket) => this.#add(socket));
    server.on('request', (request, response) => this.#begin(request, response));
    // Only `100-continue` has a meaning; what else a client expects is no reason for a bare 417 (RFC 9110, section 10.1.1).
    server.on('checkExpectation', (request, response) => this.#begin(request, response));
    const timer = setInterval(() => this.#look(), LOOK_INTERVAL_MS).unref();
    server.once('close', () => clearInterval(timer));
  }

  get size(): number {
    return this.#open.size;
  }

  /** From now on every connection ends with the answer to its last request. */
  drain(): void {
    this.#isDraining = true;
    for (const connection of this.#open.values()) end(connection);
  }

  /** Ends the connections whose clients have sent nothing so far. */
  closeSilent(): void {
    const before = performance.now() - FIRST_BYTE_TIMEOUT_MS;
    for (const [socket, { since }] of this.#open) if (socket.bytesRead === 0 && since < before) socket.destroy();
  }

  closeAll(): void {
    for (const socket of this.#open.keys()) socket.destroy();
  }

  #add(socket: Socket): void {
    const connection: Connection = { since: performance.now(), address: socket.remoteAddress, underWay: [] };
    this.accepted += 1;
    this.#open.set(socket, connection);
    socket.once('close', () => {
      this.#open.delete(socket);
      // Node closes the response that it is sending, and none of those behind it.
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
    connection.latest = response;
    response.on('close', () => connection.underWay.splice(connection.underWay.indexOf(response), 1));
    // Node drops requests behind an upgrade together with it.
    if (this.#isDraining || request.headers.upgrade !== undefined) end(connection);
    if (isAmbiguous(request)) refuse(response);
    else this.#handle(request, response);
  }

  /**
   * Node reads all requests of a chunk, though their connection is destroyed. Other connections of that client may have as many.
   * So each is read in a turn of its own, and other clients are served between two.
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

  /** Times clients that take nothing, and makes room where all of them together leave too much. */
  #look(): void {
    const { stall, unread } = this.#bounds;
    let all = 0;
    const waiting: { readonly socket: Socket; readonly bytes: number }[] = [];
    for (const [socket, { underWay }] of this.#open) {
      let bytes = socket.writableLength;
      // Node counts progress within a long write, too.
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

/** Of several hosts a proxy in front may have used another one than this service would (RFC 9112, section 3.2). */
function isAmbiguous({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts > 1 || (hosts === 0 && httpVersion === '1.1');
}

/** As node refuses what is no HTTP. */
function refuse(response: ServerResponse): void {
  response.sendDate = false;
  response.useChunkedEncodingByDefault = false;
  response.writeHead(400, { Connection: 'close' }).end();
}

/** Has a connection end with the answer to its latest request, unless that is out already. */
function end(connection: Connection): void {
  const { latest } = connection;
  if (latest === undefined || latest.headersSent) return;
  latest.shouldKeepAlive = false;
  connection.isEnding = true;
}
