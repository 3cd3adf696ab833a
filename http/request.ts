import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { control, Exchange } from '../kernel/exchange.ts';
import type { Observer } from '../kernel/observer.ts';
import type { Pipeline } from '../kernel/pipeline.ts';
import { asRefusal, Refusal, refusals } from '../kernel/refusal.ts';
import { type EndpointRequest, isStream } from '../kernel/request-lifecycle.ts';
import type { Hex, HttpRequest, HttpResponse } from '../kernel/values.ts';
import type { IncomingRequest } from './connections.ts';
import { contextOf } from './contexts.ts';
import { responseTo } from './response-to.ts';
import type { Found } from './routes.ts';
import { pour, send } from './send.ts';

type Headers = Record<string, string | undefined>;

/** What requests need of the service. */
export interface RequestOptions {
  readonly observer: Observer;
  readonly pipeline: Pipeline;
  /** Makes the id of a request. */
  newId(): Hex;
  /** Checks that HTTP can carry a response, and throws if it cannot. */
  check(response: HttpResponse): HttpResponse;
  /** Told of what went wrong before, beside and behind the pipeline: at the gate, in a route's handler, in a body that streams. */
  failed(exchange: Exchange, refusal: Refusal): void;
  /** Told of the end of every response, once each. */
  closed(): void;
}

/** One request at its route, until its response is out. */
export class RoutedRequest implements EndpointRequest {
  readonly exchange: Exchange;
  readonly id: string;
  readonly httpRequest: HttpRequest;
  /** Ends the stream of the body, once there is one. */
  endStream: (() => void) | undefined;
  readonly #incoming: IncomingRequest;
  readonly #found: Found;
  readonly #options: RequestOptions;
  readonly #tasks: (() => void)[] = [];
  #isOver = false;

  constructor(incoming: IncomingRequest, found: Found, options: RequestOptions) {
    const { method = '', headers, socket } = incoming.request;
    const [requestId, socketAddress] = [options.newId(), socket.remoteAddress ?? ''];
    const { route } = found.target;
    this.exchange = new Exchange({ requestId, method, route, headers: flatten(headers), socketAddress });
    this.id = found.params.endpointId ?? '';
    this.httpRequest = new UnreadRequest(incoming);
    this.#incoming = incoming;
    this.#found = found;
    this.#options = options;
  }

  /** Runs a task once the response is out or, where its body streams, once the head is. */
  later(task: () => void): void {
    this.#tasks.push(task);
    if (this.#isOver) this.#runTasks();
    // The stream sends first what it has at once.
    else if (this.endStream !== undefined) setImmediate(() => this.#runTasks());
  }

  #runTasks(): void {
    for (const task of this.#tasks.splice(0)) task();
  }

  /** The response is out, or its client is gone. */
  close(): void {
    const { endStream, exchange } = this;
    const { writableFinished: isOut, statusCode } = this.#incoming.response;
    endStream?.();
    // Nobody waits for more of a stream. One that was cut short counts as answered all the same: its head is out.
    if (!isOut || endStream !== undefined) control.disconnect(exchange);
    this.#options.observer.response?.(exchange, isOut || endStream !== undefined ? statusCode : 499);
    this.#options.closed();
    this.#isOver = true;
    this.#runTasks();
  }

  /** @param begun called for a body that streams, before its first chunk. */
  async respond(begun: () => void): Promise<void> {
    const { exchange } = this;
    const { response } = this.#incoming;
    const { status, headers, body } = await this.#answer();
    try {
      let common = this.#options.pipeline.headers(exchange);
      if (common instanceof Promise) common = await common;
      if (!exchange.abandoned && !response.destroyed) {
        send(this.#incoming, { status, headers: [{ 'X-Request-Id': exchange.requestId }, common, headers], body });
      }
    } catch {
      // What cannot be sent must not be waited for.
      response.destroy();
    }
    if (!isStream(body)) return;
    this.endStream = pour(body, this.#incoming, (error) => this.#streamFailed(error));
    this.#runTasks();
    begun();
  }

  async #answer(): Promise<HttpResponse> {
    const { exchange } = this;
    const { pipeline } = this.#options;
    const { admit, by } = this.#found.target;
    // The pipeline tells of its own refusals.
    let isTold = false;
    try {
      if (admit !== false && this.#incoming.overloaded)
        throw new Refusal(503, 'Server busy', {
          headers: { 'Retry-After': '1' },
          fault: false,
          failureClass: 'busy',
        });
      const admitted = admit === true ? pipeline.admit(exchange) : undefined;
      if (admitted instanceof Promise) await admitted;
      if (typeof by === 'string') return await this.#route(by);
      isTold = true;
      if (by !== undefined) throw by;
      return await pipeline.serve(this);
    } catch (error) {
      const refusal = isTold ? asRefusal(error) : this.#report(error);
      // A refusal at the pipeline's stages is concluded already; any other one is concluded here.
      control.conclude(this.exchange, { kind: 'refused', refusal });
      return this.#responseTo(refusal);
    }
  }

  async #route(key: string): Promise<HttpResponse> {
    const { target, params } = this.#found;
    const { url = '' } = this.#incoming.request;
    const body = target.maxBody > 0 ? await this.httpRequest.readBody(target.maxBody) : new Uint8Array();
    const query = new URLSearchParams(url.replace(/^[^?]*/, ''));
    return this.#options.pipeline.route(key, { params, query, body }, this.exchange);
  }

  #report(error: unknown): Refusal {
    const refusal = asRefusal(error);
    this.#options.failed(this.exchange, refusal);
    return refusal;
  }

  /** An error that names a stage came from the pipeline, which has told of it. */
  #streamFailed(error: unknown): void {
    const stage = this.exchange.resolved === undefined ? 'route' : 'present';
    if (asRefusal(error).stage === undefined) this.#report(asRefusal(error, stage));
  }

  #responseTo(error: unknown): HttpResponse {
    try {
      return this.#options.check(responseTo(error));
    } catch {
      return responseTo(refusals.internal('a refusal that HTTP cannot carry'));
    }
  }
}

/** A request as `parseBody` gets it. */
class UnreadRequest implements HttpRequest {
  readonly #incoming: IncomingRequest;
  #ctx: Context | undefined;

  constructor(incoming: IncomingRequest) {
    this.#incoming = incoming;
  }

  get request(): IncomingMessage {
    return this.#incoming.request;
  }

  get ctx(): Context {
    const { request, response } = this.#incoming;
    this.#ctx ??= contextOf(request, response);
    return this.#ctx;
  }

  readBody(max: number): Promise<Buffer> {
    return readBody(this.#incoming.request, max);
  }
}

/**
 * The body of a request, as it was sent.
 * @param max bytes.
 * @throws Refusal 413 for more, 499 for a body that ends early.
 */
function readBody(request: IncomingMessage, max: number): Promise<Buffer> {
  const tooLarge = () => new Refusal(413, 'Request body too large');
  if (Number(request.headers['content-length'] ?? 0) > max) return Promise.reject(tooLarge());
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > max) reject(tooLarge());
      else chunks.push(chunk);
    });
    request.on('end', () => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
    request.on('error', () => reject(refusals.abandoned()));
  });
}

/** Node gives each header as one text (`message.headers`), but `set-cookie` as a list. */
function flatten(headers: IncomingHttpHeaders): Headers {
  const cookies = headers['set-cookie'];
  // Nobody may change the headers, so they need no copy.
  return cookies === undefined ? (headers as Headers) : { ...(headers as Headers), 'set-cookie': cookies.join(', ') };
}
