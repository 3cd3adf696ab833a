import type { IncomingMessage } from 'node:http';
import type { IncomingRequest } from './connections.ts';

/** Bytes of a body that nobody wants which are read so that the connection can be used again. */
const DRAINED = 64 * 1024;

/** A complete response; an empty body is none. */
export interface Message {
  readonly status: number;
  /** Later ones replace earlier ones, whatever the case of their names. */
  readonly headers: readonly (Readonly<Record<string, string>> | undefined)[];
  readonly body: string | Uint8Array;
}

/** Sends a response and, where the connection must not go on, ends it. */
export function send(incoming: IncomingRequest, { status, headers, body }: Message): void {
  const { request, response } = incoming;
  const bytes = Buffer.byteLength(body);
  response.statusCode = status;
  for (const some of headers) for (const name in some) response.setHeader(name, some[name] ?? '');
  if (body.length > 0) response.setHeader('Content-Length', bytes);
  const isUnread = !request.complete && isLong(request);
  if (incoming.closes(isUnread)) response.shouldKeepAlive = false;
  response.end(body);
  incoming.written(bytes);
}

/** Node reads the rest of a body to use the connection again: without bound, if nobody bounds it. */
function isLong({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > DRAINED;
}
