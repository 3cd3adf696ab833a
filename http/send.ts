import type { ServerResponse } from 'node:http';
import { isStream } from '../kernel/pipeline.ts';
import type { Refusal } from '../kernel/refusal.ts';
import type { BodyStream, Headers, HttpResponse } from '../kernel/values.ts';

/** Statuses whose responses have no body, whatever their headers say (RFC 9110, section 6.4.1). */
const EMPTY: ReadonlySet<number> = new Set([204, 304]);

export function responseTo({ status, headers, body }: Refusal): HttpResponse {
  return { status, headers, body: JSON.stringify(body) };
}

/**
 * Sends a response; of one whose body streams, the head.
 *
 * @param answer text and bytes are JSON, unless its headers name another type.
 * @param common headers of any response; those of the answer replace them, whatever the case of their names.
 */
export function send(res: ServerResponse, { status, headers, body }: HttpResponse, common: Headers): void {
  const content = isStream(body) ? '' : contentOf(body);
  const length = Buffer.byteLength(content);
  const type = length > 0 ? { 'Content-Type': 'application/json' } : undefined;
  const size = isStream(body) || EMPTY.has(status) ? undefined : { 'Content-Length': `${length}` };
  // A flat list is what node takes as it is: setting header by header costs a tenth of a cached answer.
  res.writeHead(status, listOf([type, common, headers, size]));
  if (isStream(body)) res.flushHeaders();
  else end(res, content, length);
}

/** Names and values in turn. Later ones replace earlier ones. */
function listOf(headers: readonly (Headers | undefined)[]): string[] {
  const list: string[] = [];
  for (const some of headers) {
    for (const name in some) {
      const place = placeOf(name, list);
      list[place] = name;
      list[place + 1] = some[name] ?? '';
    }
  }
  return list;
}

/** Where the name stands in the list, or the list's end. Headers are few, and their lengths tell most of them apart. */
function placeOf(name: string, list: readonly string[]): number {
  for (let place = 0; place < list.length; place += 2) {
    const other = list[place];
    if (other?.length === name.length && other.toLowerCase() === name.toLowerCase()) return place;
  }
  return list.length;
}

/** Sends content in one piece: `end` by itself hands the system two, of which the second is empty. */
function end(res: ServerResponse, content: string | Uint8Array, length: number): void {
  const { socket } = res;
  if (socket === null || length === 0) {
    res.end(content);
    return;
  }
  socket.cork();
  // Text of as many bytes as characters is ASCII, which node need not transcode.
  res.write(content, content.length === length ? 'latin1' : 'utf8');
  socket.uncork();
  res.end();
}

function contentOf(body: Exclude<HttpResponse['body'], BodyStream>): string | Uint8Array {
  return typeof body === 'string' || body instanceof Uint8Array ? body : body.json;
}

/**
 * Sends a body as it comes, behind its head. Its next chunk is asked for once the client's system has taken the one before.
 *
 * @param failed gets an error of the body while the client reads.
 * @returns what ends the response, whatever the body still waits for; to be called when the response closes, at the latest.
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
    // An HTTP/1.0 client would take the end of the connection for the end of the body.
    if (res.req.httpVersion === '1.0') res.socket?.resetAndDestroy();
    else res.destroy();
  };
  if (res.destroyed || res.req.method === 'HEAD') stop();
  // A caller that stops it at once does so before the first chunk.
  queueMicrotask(() => run().catch(cut));
  return stop;
}

/** Resolves once the client's system has taken a chunk, and never where the client is gone. */
function taken(res: ServerResponse, chunk: string | Uint8Array): Promise<void> {
  const { socket } = res.req;
  return new Promise((resolve) => res.write(chunk, (error) => (error || socket.destroyed ? undefined : resolve())));
}
