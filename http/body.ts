import type { IncomingMessage } from 'node:http';
import type { Context, Middleware } from 'koa';
import { Refusal, refusals } from '../kernel/refusal.ts';

/** Readers by their limit, in bytes: routes have few. */
const readers = new Map<number, Promise<Middleware>>();

/** The library takes longer to load than the rest of the service, so it is loaded when it is first needed. */
async function makeReader(max: number): Promise<Middleware> {
  const { HttpMethodEnum, koaBody } = await import('koa-body');
  return koaBody({
    // Without an encoding the body stays bytes: what is no UTF-8 must not be replaced.
    ...{ json: false, urlencoded: false, text: true, textTypes: ['text/plain'], textLimit: max, encoding: '' },
    parsedMethods: Object.values(HttpMethodEnum),
  });
}

function readerOf(max: number): Promise<Middleware> {
  const known = readers.get(max);
  if (known !== undefined) return known;
  const reader = makeReader(max);
  readers.set(max, reader);
  // A moment without a file descriptor must not be remembered.
  reader.catch(() => readers.delete(max));
  return reader;
}

export const tooLarge = () => new Refusal(413, 'Request body too large');

/**
 * Reads the body of a request, as it was sent.
 *
 * @param max bytes.
 * @throws Refusal 413 for more, 499 for a body that ends early.
 */
export function readBody(ctx: Context, max: number): Promise<Buffer> {
  const { 'content-length': length, 'transfer-encoding': coding } = ctx.req.headers;
  // Checked here, since the reader takes a length of 2^53 for a negative one.
  if (Number(length ?? 0) > max) return Promise.reject(tooLarge());
  return coding === undefined ? readAnnounced(ctx.req) : readChunked(ctx, max, coding);
}

async function readChunked(ctx: Context, max: number, coding: string): Promise<Buffer> {
  const reader = await readerOf(max);
  // Which type and content coding a body may have is for the plugin that asks for it.
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

/** A short cut past koa-body: node reads no more bytes than were announced, none without an announcement. */
function readAnnounced(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // Its client left before the body was read.
    if (request.destroyed && !request.readableEnded) reject(refusals.abandoned());
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
    request.on('error', () => reject(refusals.abandoned()));
  });
}
