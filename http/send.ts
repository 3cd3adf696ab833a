import type { IncomingMessage } from 'node:http';
import type { BodyStream, HttpResponse } from '../kernel/values.ts';
import type { IncomingRequest } from './connections.ts';

/** Bytes of a body that nobody wants which are read so that the connection can be used again. */
const DRAINED = 64 * 1024;

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
  response.statusCode = status;
  if (content.length > 0) response.setHeader('Content-Type', 'application/json');
  for (const some of headers) for (const name in some) response.setHeader(name, some[name] ?? '');
  if (content.length > 0) response.setHeader('Content-Length', Buffer.byteLength(content));
  const isUnread = !request.complete && isLong(request);
  if (incoming.closes(isUnread)) response.shouldKeepAlive = false;
  if (isStream(body)) {
    response.flushHeaders();
    return;
  }
  response.end(content);
  incoming.written(Buffer.byteLength(content));
}

function contentOf(body: Exclude<HttpResponse['body'], BodyStream>): string | Uint8Array {
  return typeof body === 'string' || body instanceof Uint8Array ? body : body.json;
}

export function isStream(body: HttpResponse['body']): body is BodyStream {
  return typeof body === 'object' && Symbol.asyncIterator in body;
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
