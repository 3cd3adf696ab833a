import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib';
import { endsWith, type Lifetime } from './lifetime.ts';
import { eventually } from './wait.ts';

/** Answers a request whose body has been read. Errors that it throws end the connection. */
export type Handler = (req: IncomingMessage, res: ServerResponse, recorded: RecordedRequest) => void | Promise<void>;

export interface RecordedRequest {
  readonly method: string;
  /** As in the request line: percent-encoded, with the query. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** Name, value, name, value… with names and order as sent. */
  readonly rawHeaders: readonly string[];
  /** Empty until it has been read, which is before a handler runs. */
  body: string;
}

/** A real HTTP server on loopback that answers as a test tells it to and remembers what it was asked. */
export class Upstream {
  /** `http://127.0.0.1:<port>`, without a slash at the end. */
  url = '';
  /** Every request in the order of arrival. */
  readonly requests: RecordedRequest[] = [];
  /** Requests that have arrived and whose response has neither ended nor lost its connection. */
  open = 0;
  /** Sockets that were ever opened. */
  connections = 0;
  readonly #server = createServer((req, res) => {
    this.#answer(req, res).catch(() => req.socket.destroy());
  });
  readonly #routes: Map<string, Handler>;
  readonly #requested = new Map<string, number>();
  readonly #aborted = new Map<string, number>();
  readonly #sockets = new Set<Socket>();

  constructor(handlers: Readonly<Record<string, Handler>>) {
    this.#routes = new Map(Object.entries(handlers));
    this.#server.on('connection', (socket) => this.#count(socket));
    this.#server.on('clientError', (_error, socket) => socket.destroy());
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${portOf(this.#server.address())}`;
    return this;
  }

  /** @param milliseconds after which it closes an idle socket. */
  keepIdle(milliseconds: number): void {
    this.#server.keepAliveTimeout = milliseconds;
  }

  /** Sockets that are open at present. */
  get sockets(): number {
    return this.#sockets.size;
  }

  /** Sets or replaces the answer of a path (without query); `*` is for all other paths, which are 404 else. */
  on(path: string, handler: Handler): void {
    this.#routes.set(path, handler);
  }

  /** Answers with `value` as JSON. */
  json(path: string, value: unknown, status?: number): void {
    this.on(path, faults.json(value, status));
  }

  /** Answers with just this text, so that a number keeps its digits. */
  text(path: string, body: string, options?: { status?: number; type?: string }): void {
    this.on(path, faults.text(body, options));
  }

  /** Resolves when `condition` holds. */
  async until(condition: () => boolean, what = String(condition)): Promise<void> {
    const asked = () => this.requests.map(({ method, path }) => `${method} ${path}`).slice(-5);
    await eventually(condition, () => `${what} after ${JSON.stringify(asked())}; ${this.open} open`);
  }

  /** Resolves when `count` requests to the path have arrived and been read. */
  untilRequested(path: string, count = 1): Promise<void> {
    return this.until(() => (this.#requested.get(path) ?? 0) >= count, `${count} requests for ${path}`);
  }

  /** Resolves when `count` requests to the path have lost their connection before the response was complete. */
  untilAborted(path: string, count = 1): Promise<void> {
    return this.until(() => (this.#aborted.get(path) ?? 0) >= count, `${count} requests for ${path} to be aborted`);
  }

  /** Resolves when no request is open. */
  untilIdle(): Promise<void> {
    return this.until(() => this.open === 0);
  }

  /** Destroys all sockets and stops listening. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #count(socket: Socket): void {
    this.connections += 1;
    this.#sockets.add(socket);
    socket.on('close', () => void this.#sockets.delete(socket));
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const path = pathOf(req);
    const recorded = record(req);
    this.requests.push(recorded);
    this.open += 1;
    res.on('close', () => {
      this.open -= 1;
      if (!res.writableFinished) increment(this.#aborted, path);
    });
    recorded.body = await readText(req);
    increment(this.#requested, path);
    const handler = this.#routes.get(path) ?? this.#routes.get('*') ?? notFound;
    await handler(req, res, recorded);
  }
}

/** Starts an upstream; `handlers` are set as with {@link Upstream.on}. */
export function startUpstream(handlers: Readonly<Record<string, Handler>> = {}): Promise<Upstream> {
  return new Upstream(handlers).listen();
}

/** An upstream that ends with the test or the suite. */
export function upstreamFor(lifetime: Lifetime, handlers?: Readonly<Record<string, Handler>>): Promise<Upstream> {
  return endsWith(lifetime, startUpstream(handlers));
}

/** A {@link Handler} that keeps its answers, which have a price, until they are released. */
export function holding() {
  const held: ServerResponse[] = [];
  return {
    /** Answers that the upstream owes. */
    held,
    hold: (_: unknown, res: ServerResponse) => void held.push(res),
    arrived: (count: number) => eventually(() => held.length === count, `${count} upstream calls`),
    release: () => {
      for (const res of held.splice(0)) res.setHeader('content-type', 'application/json').end('{"price": 5}');
    },
  };
}

/** How to code a body. */
export type Coding = 'gzip' | 'deflate' | 'br';

const compress: Record<Coding, (body: Buffer | string) => Buffer> = {
  gzip: (body) => gzipSync(body),
  deflate: (body) => deflateSync(body),
  // The default quality takes seconds for a mebibyte.
  br: (body) => brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
};

/** Answers, good and bad, for {@link Upstream.on}. */
export const faults = {
  json: (value: unknown, status = 200): Handler => faults.text(JSON.stringify(value), { status }),

  /** A body with its length. */
  text:
    (body: string, { status = 200, type = 'application/json' } = {}): Handler =>
    (_req, res) => {
      res.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body);
    },

  /** A status without a body. */
  empty:
    (status: number): Handler =>
    (_req, res) => {
      res.writeHead(status).end();
    },

  html: (): Handler => faults.text('<!doctype html><title>Sign in</title>', { type: 'text/html' }),

  invalidJson: (): Handler => faults.text('{"price": 1,}'),

  serverError: (): Handler => faults.text('{"error":"out of order"}', { status: 500 }),

  redirect:
    (location: string, status = 302): Handler =>
    (_req, res) => {
      res.writeHead(status, { location, 'content-length': 0 }).end();
    },

  /** JSON arrays nested `depth` deep. */
  nested: (depth: number): Handler => faults.text('['.repeat(depth) + ']'.repeat(depth)),

  /** Never answers. */
  hang: (): Handler => () => {},

  /** Sends headers that announce a body, and no body. */
  hangAfterHeaders: (): Handler => (_req, res) => {
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 }).flushHeaders();
  },

  /** Sends a byte each 50 ms: no single wait is long. */
  drip:
    (body: string): Handler =>
    (_req, res) => {
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
      const bytes = [...Buffer.from(body)];
      const timer = setInterval(() => {
        const byte = bytes.shift();
        if (byte === undefined) res.end();
        else res.write(Buffer.of(byte));
      }, 50);
      res.on('close', () => clearInterval(timer));
    },

  /** Answers after a while. */
  slow:
    (ms: number, answer: Handler): Handler =>
    (req, res, recorded) => {
      const timer = setTimeout(() => answer(req, res, recorded), ms);
      res.on('close', () => clearTimeout(timer));
    },

  /** Announces another length than it sends; when that is too little, the connection closes then. */
  lieAboutLength:
    (body: string, announced: number): Handler =>
    (_req, res) => {
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': announced });
      if (announced > Buffer.byteLength(body)) res.write(body, () => res.socket?.end());
      else res.end(body);
    },

  /** `size` bytes with their length: a JSON string when there is room for one. */
  big:
    (size: number): Handler =>
    (_req, res) => {
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': size }).end(jsonOfSize(size));
    },

  /** `size` bytes in chunks, without a length. */
  chunked:
    (size: number, chunkSize = 16_384): Handler =>
    (_req, res) => {
      res.writeHead(200, { 'content-type': 'application/json', 'transfer-encoding': 'chunked' });
      const body = jsonOfSize(size);
      for (let offset = 0; offset < size; offset += chunkSize) res.write(body.subarray(offset, offset + chunkSize));
      res.end();
    },

  /** Chunks without end, as fast as they are taken. */
  endless: (): Handler => (_req, res) => {
    res.writeHead(200, { 'content-type': 'application/json', 'transfer-encoding': 'chunked' });
    const chunk = Buffer.alloc(65_536, 'a');
    const pump = () => {
      while (!res.destroyed && res.write(chunk));
    };
    res.on('drain', pump);
    pump();
  },

  /** A coded body with the coded length. */
  coded: (coding: Coding, body: Buffer | string): Handler => faults.codedBytes(coding, compress[coding](body)),

  /** Bytes that are announced as coded, whatever they are. */
  codedBytes:
    (contentEncoding: string, bytes: Buffer): Handler =>
    (_req, res) => {
      const headers = { 'content-type': 'application/json', 'content-length': bytes.length };
      res.writeHead(200, { ...headers, 'content-encoding': contentEncoding }).end(bytes);
    },

  /** Sends half of a chunked body and closes the connection in order. */
  closeHalfWay: (): Handler => (_req, res) => {
    res.writeHead(200, { 'content-type': 'application/json', 'transfer-encoding': 'chunked' });
    res.write('{"price":', () => res.socket?.end());
  },

  /** Resets the connection without an answer. */
  reset: (): Handler => (req) => {
    req.socket.resetAndDestroy();
  },

  /** Writes these bytes as the whole answer, status line included, then closes in order unless told to keep open. */
  raw:
    (bytes: string | Buffer, { keepOpen = false } = {}): Handler =>
    (req) => {
      if (keepOpen) req.socket.write(bytes);
      else req.socket.end(bytes);
    },

  /** Answers the first request of a socket and does `then` with any later one. */
  onReuse: (first: Handler, then: Handler): Handler => {
    const used = new WeakSet<Socket>();
    return (req, res, recorded) => {
      const handler = used.has(req.socket) ? then : first;
      used.add(req.socket);
      return handler(req, res, recorded);
    };
  },
};

/** A JSON string of just this many bytes. */
export function jsonOfSize(size: number): Buffer {
  const body = Buffer.alloc(size, 'a');
  body.write('"', 0);
  body.write('"', size - 1);
  return body;
}

function notFound(_req: IncomingMessage, res: ServerResponse): void {
  res.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"no such route"}');
}

function record(req: IncomingMessage): RecordedRequest {
  const { method = '', url = '', headers, rawHeaders } = req;
  return { method, path: url, headers, rawHeaders, body: '' };
}

function pathOf(req: IncomingMessage): string {
  return (req.url ?? '').split('?', 1)[0] ?? '';
}

function increment(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

async function readText(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new Error('The upstream has no TCP port');
  return address.port;
}
