import type { IncomingMessage, ServerResponse } from 'node:http';
import type { IncomingRequest } from './connections.ts';

/** Bytes of a body that nobody wants which are read, so that its sender gets the answer before the connection ends. */
const DRAINED = 64 * 1024;
/** Milliseconds in which the sender can read the answer. */
const LINGER = 1000;

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
  if (isUnread || incoming.closes()) response.shouldKeepAlive = false;
  if (isUnread) endAfterDrain(request, response, body);
  else response.end(body);
  incoming.written(bytes);
}

/** Node reads the rest of a body to use the connection again: without bound, if nobody bounds it. */
function isLong({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > DRAINED;
}

function endAfterDrain(request: IncomingMessage, response: ServerResponse, body: Message['body']): void {
  if (body.length === 0) response.flushHeaders();
  else response.write(body);
  let left = DRAINED;
  const end = () => {
    clearTimeout(timer);
    request.off('data', count).off('end', end);
    response.end();
  };
  const count = (chunk: Buffer) => {
    left -= chunk.length;
    // Closed with bytes unread, the connection would be reset, and its client might lose the answer before it has read it.
    if (left < 0) request.pause();
  };
  const timer = setTimeout(end, LINGER);
  request.on('data', count).once('end', end).resume();
}
