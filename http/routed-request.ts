import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type Koa from 'koa';
import type { Context } from 'koa';
import { Exchange } from '../kernel/exchange.ts';
import type { EndpointRequest } from '../kernel/pipeline.ts';
import type { Hex, HttpRequest } from '../kernel/values.ts';
import { readBody } from './body.ts';
import type { IncomingRequest } from './connections.ts';
import type { PathParameters } from './routes.ts';
import type { Stream } from './stream.ts';

type Task = () => void;

/** One request at its route. */
export class RoutedRequest implements EndpointRequest {
  readonly exchange: Exchange;
  readonly incoming: IncomingRequest;
  readonly params: PathParameters;
  readonly httpRequest: HttpRequest;
  /** The body, once it streams. */
  stream: Stream | undefined;
  readonly #tasks: Task[] = [];
  #isOver = false;

  /**
   * @param route as it stands in logs and metrics.
   * @param app whose contexts middleware gets.
   */
  constructor(requestId: Hex, route: string, incoming: IncomingRequest, params: PathParameters, app: Koa) {
    const { method = '', headers, socket } = incoming.request;
    const socketAddress = socket.remoteAddress ?? '';
    this.exchange = new Exchange({ requestId, method, route, headers: flatten(headers), socketAddress });
    this.incoming = incoming;
    this.params = params;
    this.httpRequest = new UnreadRequest(incoming, app);
  }

  get id(): string {
    return this.params.endpointId ?? '';
  }

  /** Takes what must wait until the response is out or, of one that streams, until its head is. */
  later(task: Task): void {
    this.#tasks.push(task);
    if (this.#isOver) this.#runTasks();
    // Behind what the stream has to say at once.
    else if (this.stream !== undefined) setImmediate(() => this.#runTasks());
  }

  /** The head is out. */
  begin(stream: Stream): void {
    this.stream = stream;
    this.#runTasks();
  }

  close(): void {
    this.#isOver = true;
    this.#runTasks();
  }

  #runTasks(): void {
    for (const task of this.#tasks.splice(0)) task();
  }
}

/** A request as `read` gets it. */
class UnreadRequest implements HttpRequest {
  readonly request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #app: Koa;
  #ctx: Context | undefined;

  constructor({ request, response }: IncomingRequest, app: Koa) {
    this.request = request;
    this.#response = response;
    this.#app = app;
  }

  get ctx(): Context {
    this.#ctx ??= this.#app.createContext(this.request, this.#response);
    return this.#ctx;
  }

  readBody(max: number): Promise<Buffer> {
    return readBody(this.request, max);
  }
}

function flatten(headers: IncomingHttpHeaders): Record<string, string | undefined> {
  const flat: Record<string, string | undefined> = {};
  for (const name in headers) {
    const value = headers[name];
    flat[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flat;
}
