import type { Exchange } from './exchange.ts';
import type { Hooks } from './hooks.ts';
import { type Produce, producer } from './produce.ts';
import { refusals, refuse } from './refusal.ts';
import { type EndpointRequest, RequestLifecycle, type RequestServices, type Runtime } from './request-lifecycle.ts';
import type { Awaitable, Headers, HttpResponse, RouteRequest } from './values.ts';

const none: Headers = Object.freeze({});

/** Runs requests through the stages, in the order of the table of stages. */
export class Pipeline implements RequestServices {
  readonly hooks: Hooks;
  readonly runtime: Runtime;
  readonly produce: Produce;
  readonly repeats: ReadonlySet<string>;

  constructor(hooks: Hooks, runtime: Runtime, repeats: ReadonlySet<string> = new Set()) {
    this.hooks = hooks;
    this.runtime = runtime;
    this.produce = producer(hooks, runtime);
    this.repeats = repeats;
  }

  /** Resolves when all work, detached runs and observers included, is done. */
  drained(): Promise<void> {
    return this.hooks.running.wait();
  }

  /** May the client come in at all? @throws Refusal */
  admit(exchange: Exchange): Awaitable<unknown> {
    return this.hooks.ask('admit', exchange);
  }

  /** @param key of the route. @throws Refusal */
  async route(key: string, request: RouteRequest, exchange: Exchange): Promise<HttpResponse> {
    const response = await this.hooks.askFor('route', key, request, exchange);
    return response ?? refuse('route', refusals.internal(`nothing serves ${key}`));
  }

  /** The headers of any response, if there are any. */
  headers(exchange: Exchange): Awaitable<Headers | undefined> {
    return this.hooks.ask('respond', none, exchange);
  }

  /** One request, from its endpoint's id to the response. @throws Refusal */
  serve(request: EndpointRequest): Promise<HttpResponse> {
    return new RequestLifecycle(this, request).serve();
  }
}
