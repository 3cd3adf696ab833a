import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type Koa from 'koa';
import type { Context } from 'koa';
import { Exchange } from '../kernel/exchange.ts';
import type { EndpointRequest } from '../kernel/pipeline.ts';
import type { Arrival, Hex } from '../kernel/values.ts';
import { readBody } from './body.ts';
import type { Arrived } from './connections.ts';
import type { PathParameters } from './routes.ts';

type Task = () => void;

/** One request at its route. */
export class Visit implements Arrival, EndpointRequest {
  readonly exchange: Exchange;
  readonly arrived: Arrived;
  readonly params: PathParameters;
  readonly #app: Koa;
  #ctx: Context | undefined;
  #tasks: Task[] | undefined;
  #isOver = false;

  /**
   * @param route as it stands in logs and metrics.
   * @param app whose contexts middleware gets.
   */
  constructor(requestId: Hex, route: string, arrived: Arrived, params: PathParameters, app: Koa) {
    const { method = '', headers, socket } = arrived.request;
    const socketAddress = socket.remoteAddress ?? '';
    this.exchange = new Exchange({ requestId, method, route, headers: flatten(headers), socketAddress });
    this.arrived = arrived;
    this.params = params;
    this.#app = app;
  }

  get id(): string {
    return this.params.endpointId ?? '';
  }

  get arrival(): Arrival {
    return this;
  }

  get request(): IncomingMessage {
    return this.arrived.request;
  }

  get ctx(): Context {
    this.#ctx ??= this.#app.createContext(this.arrived.request, this.arrived.response);
    return this.#ctx;
  }

  readBody(max: number): Promise<Buffer> {
    return readBody(this.arrived.request, max);
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

function flatten(headers: IncomingHttpHeaders): Record<string, string | undefined> {
  const flat: Record<string, string | undefined> = {};
  for (const name in headers) {
    const value = headers[name];
    flat[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flat;
}
