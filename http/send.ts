import type { IncomingMessage } from 'node:http';
import type { BodyStream, HttpResponse } from '../kernel/values.ts';
import type { IncomingRequest } from './connections.ts';
import { isStream } from './stream.ts';

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

/** Node reads the rest of a body to use the connection again: without bound, if nobody bounds it. */
function isLong({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > DRAINED;
}
