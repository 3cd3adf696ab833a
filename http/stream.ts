import type { BodyStream, HttpResponse } from '../kernel/values.ts';
import type { IncomingRequest } from './connections.ts';

export function isStream(body: HttpResponse['body']): body is BodyStream {
  return typeof body === 'object' && Symbol.asyncIterator in body;
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
