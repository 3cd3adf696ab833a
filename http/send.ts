import type { IncomingMessage, ServerResponse } from 'node:http';
import { isStream } from '../kernel/request-lifecycle.ts';
import type { BodyStream, HttpResponse } from '../kernel/values.ts';
import type { IncomingRequest } from './connections.ts';

/** Bytes of an unwanted body that are read, so that the connection can be used again. */
const DRAINED = 64 * 1024;

/** Statuses whose responses have no body, whatever their headers say (RFC 9110, section 6.4.1). */
const EMPTY: ReadonlySet<number> = new Set([204, 304]);

/** A complete response; an empty body is none. */
export interface Message {
  readonly status: number;
  /** Later ones replace earlier ones, whatever the case of their names. */
  readonly headers: readonly (Readonly<Record<string, string>> | undefined)[];
  /** Text and bytes are JSON, unless the headers name another type. Of a stream only the head is sent here. */
  readonly body: HttpResponse['body'];
}

/** Sends a response and, where the connection must not go on, ends it. */
export function send(incoming: IncomingRequest, { status, headers, body }: Message): void {
  const { request, response } = incoming;
  const content = isStream(body) ? '' : contentOf(body);
  const length = Buffer.byteLength(content);
  const isUnread = !request.complete && isLong(request);
  if (incoming.closes(isUnread)) response.shouldKeepAlive = false;
  const type = length > 0 ? { 'Content-Type': 'application/json' } : undefined;
  const size = isStream(body) || EMPTY.has(status) ? undefined : { 'Content-Length': `${length}` };
  response.writeHead(status, listOf([type, ...headers, size]));
  if (isStream(body)) {
    response.flushHeaders();
    return;
  }
  end(response, content, length);
  incoming.written(length);
}

/** Names and values in turn, which node takes as they are. */
function listOf(headers: Message['headers']): string[] {
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
function end(response: ServerResponse, content: string | Uint8Array, length: number): void {
  const { socket } = response;
  if (socket === null || length === 0) {
    response.end(content);
    return;
  }
  socket.cork();
  // Text of as many bytes as characters is ASCII, which node need not transcode.
  response.write(content, content.length === length ? 'latin1' : 'utf8');
  socket.uncork();
  response.end();
}

function contentOf(body: Exclude<HttpResponse['body'], BodyStream>): string | Uint8Array {
  return typeof body === 'string' || body instanceof Uint8Array ? body : body.json;
}

/** Whether the rest of a body may be long. Node would read all of it to use the connection again. */
function isLong({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > DRAINED;
}

/**
 * Sends a body as it comes, behind its head. Its next chunk is asked for once the client's system has taken the one before.
 * @param failed gets what the body throws while somebody wants it.
 * @returns what ends the response, whatever the body still waits for. It must be called when the response closes, at the latest.
 */
export function pour(body: BodyStream, incoming: IncomingRequest, failed: (error: unknown) => void): () => void {
  const { request, response, write } = incoming;
  const iterator = body[Symbol.asyncIterator]();
  let isOver = false;
  const finish = () => {
    isOver = true;
    if (!response.destroyed) response.end();
  };
  const end = () => {
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
      else await write(value);
    }
  };
  const cut = (error: unknown) => {
    if (isOver) return;
    isOver = true;
    failed(error);
    // An HTTP/1.0 client would take the end of the connection for the end of the body.
    if (request.httpVersion === '1.0') request.socket.resetAndDestroy();
    else response.destroy();
  };
  if (response.destroyed || request.method === 'HEAD') end();
  // A caller that ends it at once does so before the first chunk.
  queueMicrotask(() => run().catch(cut));
  return end;
}
