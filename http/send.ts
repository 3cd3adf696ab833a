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

/** A body that is sent as it comes. Its next chunk is asked for once the client's system has taken the one before. */
export class Stream {
  readonly #incoming: IncomingRequest;
  readonly #iterator: AsyncIterator<string | Uint8Array>;
  readonly #failed: (error: unknown) => void;
  #isOver = false;

  /** @param failed told of what its maker throws while somebody wants it. */
  constructor(body: BodyStream, incoming: IncomingRequest, failed: (error: unknown) => void) {
    this.#incoming = incoming;
    this.#failed = failed;
    this.#iterator = body[Symbol.asyncIterator]();
  }

  /** Sends all of it behind the head, which is written. */
  async pour(): Promise<void> {
    const { request, response, write } = this.#incoming;
    if (request.method === 'HEAD') this.end();
    try {
      while (!this.#isOver) {
        const { done, value } = await this.#iterator.next();
        if (this.#isOver) return;
        if (done) this.#finish();
        else await write(value);
      }
    } catch (error) {
      if (this.#isOver) return;
      this.#isOver = true;
      this.#failed(error);
      // To HTTP/1.0, which knows no other end, the end of the connection would look like that of the body.
      if (request.httpVersion === '1.0') request.socket.resetAndDestroy();
      else response.destroy();
    }
  }

  /** No more of it is wanted: the response ends here, whatever its maker still waits for. */
  end(): void {
    if (this.#isOver) return;
    this.#finish();
    const returned = async () => this.#iterator.return?.();
    returned().catch(this.#failed);
  }

  #finish(): void {
    this.#isOver = true;
    if (!this.#incoming.response.destroyed) this.#incoming.response.end();
  }
}
