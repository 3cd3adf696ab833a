import type { ServerResponse } from 'node:http';
import type { Refusal } from '../kernel/refusal.ts';
import { type BodyStream, type Headers, type HttpResponse, isStream } from '../kernel/values.ts';

/** Statuses whose responses have no body, whatever their headers say (RFC 9110, section 6.4.1). */
const EMPTY: ReadonlySet<number> = new Set([204, 304]);

/** Returns the HTTP response for a refusal. */
export function responseTo({ status, headers, body }: Refusal): HttpResponse {
  return { status, headers, body: JSON.stringify(body) };
}

/**
 * Sends a response or, if its body streams, the response's head.
 *
 * @param response its text or bytes are JSON, unless its headers name another type.
 * @param common headers of every response; those of this response replace them, whatever the case of their names.
 */
export function send(res: ServerResponse, { status, headers, body }: HttpResponse, common: Headers): void {
  const content = isStream(body) ? '' : contentOf(body);
  const length = Buffer.byteLength(content);
  const type = length > 0 ? { 'Content-Type': 'application/json' } : undefined;
  const size = isStream(body) || EMPTY.has(status) ? undefined : { 'Content-Length': `${length}` };
  // Node takes a flat list as it is. Setting header by header costs a tenth of a cached answer.
  res.writeHead(status, listOf([type, common, headers, size]));
  if (isStream(body)) res.flushHeaders();
  else end(res, content, length);
}

/** Returns a flat list of names and values. Later headers replace earlier ones of the same name. */
function listOf(headers: readonly (Headers | undefined)[]): string[] {
  const list: string[] = [];
  for (const some of headers)
    for (const name in some) {
      const place = placeOf(name, list);
      list[place] = name;
      list[place + 1] = some[name] ?? '';
    }
  return list;
}

/** Returns the index of a name in the list, or the list's length. Comparing lengths first skips most of the few headers. */
function placeOf(name: string, list: readonly string[]): number {
  for (let place = 0; place < list.length; place += 2) {
    const other = list[place];
    if (other?.length === name.length && other.toLowerCase() === name.toLowerCase()) return place;
  }
  return list.length;
}

/** Sends content as one write to the system; `res.end` alone makes a second, empty one. */
function end(res: ServerResponse, content: string | Uint8Array, length: number): void {
  const { socket } = res;
  socket?.cork();
  // A text with as many bytes as characters is ASCII, which node need not transcode.
  if (length > 0) res.write(content, content.length === length ? 'latin1' : 'utf8');
  socket?.uncork();
  res.end();
}

/** Returns the text or the bytes of a body that does not stream. */
export function contentOf(body: Exclude<HttpResponse['body'], BodyStream>): string | Uint8Array {
  return typeof body === 'string' || body instanceof Uint8Array ? body : body.json;
}

/**
 * Sends the chunks of a streaming body, after its head. It asks for a chunk once the client's system has taken the one before.
 *
 * @param failed called with an error of the body while the client reads.
 * @returns a function that ends the response at once. The caller must call it when the response closes, at the latest.
 */
export function pour(body: BodyStream, res: ServerResponse, failed: (error: unknown) => void): () => void {
  const iterator = body[Symbol.asyncIterator]();
  let isOver = false;
  const finish = () => {
    isOver = true;
    res.end();
  };
  const stop = () => {
    if (isOver) return;
    finish();
    const returned = async () => iterator.return?.();
    returned().catch(failed);
  };
  const run = async () => {
    while (!isOver) {
      const { done, value } = await iterator.next();
      if (isOver) return;
      if (done) finish();
      else await taken(res, value);
    }
  };
  const cut = (error: unknown) => {
    if (isOver) return;
    isOver = true;
    failed(error);
    // An HTTP/1.0 client would take a closed connection for the end of the body, so it gets a reset.
    if (res.req.httpVersion === '1.0') res.socket?.resetAndDestroy();
    else res.destroy();
  };
  if (res.destroyed || res.req.method === 'HEAD') stop();
  // Run in a later microtask, so that a caller can stop it before the first chunk.
  queueMicrotask(() => run().catch(cut));
  return stop;
}

/** Writes a chunk. Resolves once the client's system has taken it; never if the client has left. */
function taken(res: ServerResponse, chunk: string | Uint8Array): Promise<void> {
  const { socket } = res.req;
  return new Promise((resolve) => res.write(chunk, (error) => (error || socket.destroyed ? undefined : resolve())));
}
