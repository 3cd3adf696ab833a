import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type Koa from 'koa';
import type { Context } from 'koa';
import { Exchange } from '../kernel/exchange.ts';
import type { Later } from '../kernel/pipeline.ts';
import type { Arrival, Hex } from '../kernel/values.ts';
import { readBody } from './body.ts';
import type { Arrived } from './connections.ts';
import type { PathParameters } from './routes.ts';

type Task = () => void;

/** One request at its route. */
export class Visit implements Arrival {
  readonly exchange: Exchange;
  readonly arrived: Arrived;
  readonly params: PathParameters;
  readonly #app: Koa;
  #ctx: Context | undefined;
  readonly #tasks: Task[] = [];
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
  readonly later: Later = (task) => {
    if (this.#isOver) task();
    else this.#tasks.push(task);
  };

  close(): void {
    this.#isOver = true;
    for (const task of this.#tasks.splice(0)) task();
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
