import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type Koa from 'koa';
import type { Context } from 'koa';
import { Exchange } from '../kernel/exchange.ts';
import type { EndpointRequest } from '../kernel/pipeline.ts';
import type { Hex, HttpRequest } from '../kernel/values.ts';
import { readBody } from './body.ts';
import type { IncomingRequest } from './connections.ts';
import type { PathParameters } from './routes.ts';

type Task = () => void;

/** One request at its route. */
export class RoutedRequest implements EndpointRequest {
  readonly exchange: Exchange;
  readonly incoming: IncomingRequest;
  readonly params: PathParameters;
  readonly httpRequest: HttpRequest;
  #tasks: Task[] | undefined;
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

  /** Takes what must wait until the response is out. */
  later(task: Task): void {
    if (this.#isOver) {
      task();
      return;
    }
    this.#tasks ??= [];
    this.#tasks.push(task);
  }

  close(): void {
    this.#isOver = true;
    for (const task of this.#tasks ?? []) task();
    this.#tasks = undefined;
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
