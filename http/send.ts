import type { IncomingMessage, ServerResponse } from 'node:http';
import { isStream } from '../kernel/request-lifecycle.ts';
import type { BodyStream, HttpResponse } from '../kernel/values.ts';
import type { IncomingRequest } from './connections.ts';

/** Bytes of a body that nobody wants which are read so that the connection can be used again. */
const DRAINED = 64 * 1024;

/** They have no body, whatever their headers say (RFC 9110, section 6.4.1). */
const EMPTY: ReadonlySet<number> = new Set([204, 304]);

/** A complete response; an empty body is none. */
export interface Message {
  readonly status: number;
  /** Later ones replace earlier ones, whatever the case of their names. */
  readonly headers: readonly (Readonly<Record<string, string>> | undefined)[];
  /** Of one that streams the head is sent. What is text or bytes is JSON, unless the headers name another type. */
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

/** Where the name stands in the list, or its end: of as few as there are, the length tells most apart. */
function placeOf(name: string, list: readonly string[]): number {
  for (let place = 0; place < list.length; place += 2) {
    const other = list[place];
    if (other?.length === name.length && other.toLowerCase() === name.toLowerCase()) return place;
  }
  return list.length;
}

/** In one piece: `end` by itself has the system gather two, of which the second is empty. */
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

/** Node reads the rest of a body to use the connection again: without bound, if nobody bounds it. */
function isLong({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > DRAINED;
}

/**
 * Sends a body as it comes, behind its head. Its next chunk is asked for once the client's system has taken the one before.
 * @param failed told of what its maker throws while somebody wants it.
 * @returns ends the response, whatever the maker still waits for: nobody wants more. To be called when it closes, at the latest.
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
    // To HTTP/1.0, which knows no other end, the end of the connection would look like that of the body.
    if (request.httpVersion === '1.0') request.socket.resetAndDestroy();
    else response.destroy();
  };
  if (response.destroyed || request.method === 'HEAD') end();
  // Whoever has it end at once does so first.
  queueMicrotask(() => run().catch(cut));
  return end;
}
