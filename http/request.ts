import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { Exchange } from '../kernel/exchange.ts';
import type { EndpointRequest } from '../kernel/pipeline.ts';
import { Refusal, refusals } from '../kernel/refusal.ts';
import type { Hex, HttpRequest } from '../kernel/values.ts';
import { deferred } from '../lib/time.ts';

/** An HTTP request with its exchange, until its response is out. */
export class IncomingRequest implements EndpointRequest {
  readonly exchange: Exchange;
  readonly endpointId: string;
  readonly httpRequest: HttpRequest;
  readonly #response = deferred<void>();
  readonly responded = this.#response.promise;
  /** Called once the response, or the head of a stream, is out. */
  readonly setResponded = this.#response.resolve;
  #body: Promise<Buffer> | undefined;

  /** @param route the pattern of its path. */
  constructor(ctx: Context, route: string, requestId: Hex) {
    const { method = '', headers, socket } = ctx.req;
    const socketAddress = socket.remoteAddress ?? '';
    this.exchange = new Exchange({ requestId, method, route, headers: flatten(headers), socketAddress });
    this.endpointId = ctx.params?.endpointId ?? '';
    this.httpRequest = { request: ctx.req, readBody: (max) => this.#read(ctx, max) };
  }

  /** Reads the body once, although several functions may ask for it. */
  #read(ctx: Context, max: number): Promise<Buffer> {
    // `readAnnounced` counts nothing.
    if (Number(ctx.req.headers['content-length'] ?? 0) > max) return Promise.reject(tooLarge());
    const begun = this.#body;
    this.#body ??= readBody(ctx, max);
    return begun?.then((body) => (body.length > max ? Promise.reject(tooLarge()) : body)) ?? this.#body;
  }
}

/** Returns headers as texts: in node's `message.headers` only `set-cookie` is a list. */
function flatten(headers: IncomingHttpHeaders): Record<string, string | undefined> {
  const texts = headers as Record<string, string | undefined>;
  const cookies = headers['set-cookie'];
  // No copy is needed, since nothing changes the headers.
  return cookies === undefined ? texts : { ...texts, 'set-cookie': cookies.join(', ') };
}

/** Makes the refusal of a body over its limit. */
const tooLarge = () => new Refusal(413, 'Request body too large');

/**
 * Reads the body of a request as it was sent.
 *
 * @param max bytes.
 * @throws Refusal 413 for a longer body, 499 for one that ends early.
 */
function readBody(ctx: Context, max: number): Promise<Buffer> {
  const coding = ctx.req.headers['transfer-encoding'];
  return coding === undefined ? readAnnounced(ctx.req) : readChunked(ctx, max, coding);
}

/** Reads a body with koa-body, which is loaded on first use: it takes longer to load than the rest of the service. */
async function readChunked(ctx: Context, max: number, coding: string): Promise<Buffer> {
  const { HttpMethodEnum, koaBody } = await import('koa-body');
  // Without an encoding the body stays bytes: bytes that are not UTF-8 must not be replaced.
  const read = koaBody({ textLimit: max, encoding: '', parsedMethods: Object.values(HttpMethodEnum) });
  // koa-body leaves a text as it is. The plugin that asks for the body decides which media type and content coding it may have.
  const { headers } = ctx.req;
  ctx.req.headers = { 'content-type': 'text/plain', 'transfer-encoding': coding };
  try {
    await read(ctx, async () => undefined);
  } catch (error) {
    throw error instanceof Error && Reflect.get(error, 'status') === 413 ? tooLarge() : refusals.abandoned();
  } finally {
    ctx.req.headers = headers;
  }
  const { body }: { body?: unknown } = ctx.request;
  return Buffer.isBuffer(body) ? body : Buffer.alloc(0);
}

/** Reads a body without koa-body: node itself reads no more bytes than `Content-Length` says, and none without it. */
function readAnnounced(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // The client left before the body was read: no event will come.
    if (request.destroyed && !request.readableEnded) reject(refusals.abandoned());
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
    request.on('error', () => reject(refusals.abandoned()));
  });
}
