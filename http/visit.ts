import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type Koa from 'koa';
import type { Context } from 'koa';
import { Exchange } from '../kernel/exchange.ts';
import type { Later } from '../kernel/pipeline.ts';
import type { Arrival } from '../kernel/stages.ts';
import type { Arrived } from './connections.ts';

type Task = () => void;

/** What the pattern of a route found in a path. */
export type PathParameters = Readonly<Record<string, string>>;

/** One request at its route. */
export class Visit {
  readonly exchange: Exchange;
  readonly arrived: Arrived;
  readonly params: PathParameters;
  readonly arrival: Arrival;
  readonly #tasks: Task[] = [];
  #isOver = false;

  /** @param route as it stands in logs and metrics. */
  constructor(route: string, arrived: Arrived, params: PathParameters, app: Koa, ctx?: Context) {
    this.exchange = exchangeOf(arrived.request, route);
    this.arrived = arrived;
    this.params = params;
    this.arrival = new KoaArrival(arrived, app, ctx);
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

/** A request as `read` gets it. */
class KoaArrival implements Arrival {
  readonly request: IncomingMessage;
  readonly #arrived: Arrived;
  readonly #app: Koa;
  #ctx: Context | undefined;

  constructor(arrived: Arrived, app: Koa, ctx: Context | undefined) {
    this.request = arrived.request;
    this.#arrived = arrived;
    this.#app = app;
    this.#ctx = ctx;
  }

  /** Made when it is first asked for. */
  get ctx(): Context {
    this.#ctx ??= this.#app.createContext(this.#arrived.request, this.#arrived.response);
    return this.#ctx;
  }
}

function exchangeOf({ method = '', headers, socket }: IncomingMessage, route: string): Exchange {
  return new Exchange({ method, route, headers: flatten(headers), socketAddress: socket.remoteAddress ?? '' });
}

function flatten(headers: IncomingHttpHeaders): Record<string, string | undefined> {
  const flat: Record<string, string | undefined> = {};
  for (const name in headers) {
    const value = headers[name];
    flat[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flat;
}
