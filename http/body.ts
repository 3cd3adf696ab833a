import type { IncomingMessage } from 'node:http';
import type { Context, Middleware } from 'koa';
import { Refusal, refusals } from '../kernel/refusal.ts';

/** Readers by their limit in bytes. Routes have few different limits, so the map stays small. */
const readers = new Map<number, Middleware>();

/** Makes a reader with koa-body, which is loaded on first use: it takes longer to load than the rest of the service. */
async function readerOf(max: number): Promise<Middleware> {
  const known = readers.get(max);
  if (known !== undefined) return known;
  const { HttpMethodEnum, koaBody } = await import('koa-body');
  // Without an encoding the body stays bytes: bytes that are not UTF-8 must not be replaced.
  const reader = koaBody({ textLimit: max, encoding: '', parsedMethods: Object.values(HttpMethodEnum) });
  readers.set(max, reader);
  return reader;
}

/** Makes the refusal of a body over its limit. */
export const tooLarge = () => new Refusal(413, 'Request body too large');

/**
 * Reads the body of a request as it was sent.
 *
 * @param max bytes.
 * @throws Refusal 413 for a longer body, 499 for one that ends early.
 */
export function readBody(ctx: Context, max: number): Promise<Buffer> {
  const { 'content-length': length, 'transfer-encoding': coding } = ctx.req.headers;
  // `readAnnounced` counts nothing.
  if (Number(length ?? 0) > max) return Promise.reject(tooLarge());
  return coding === undefined ? readAnnounced(ctx.req) : readChunked(ctx, max, coding);
}

async function readChunked(ctx: Context, max: number, coding: string): Promise<Buffer> {
  const reader = await readerOf(max);
  // koa-body leaves a text as it is. The plugin that asks for the body decides which media type and content coding it may have.
  const { headers } = ctx.req;
  ctx.req.headers = { 'content-type': 'text/plain', 'transfer-encoding': coding };
  try {
    await reader(ctx, async () => undefined);
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
