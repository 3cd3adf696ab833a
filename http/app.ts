import type { IncomingMessage, ServerResponse } from 'node:http';
import Koa, { type Context, type Middleware } from 'koa';
import { control } from '../kernel/exchange.ts';
import { type Runtime, serve } from '../kernel/pipeline.ts';
import { asRefusal, Refusal, refusals, refuse } from '../kernel/refusal.ts';
import { type PluginSet, type Route, routeKey } from '../kernel/registry.ts';
import { type BodyStream, type Headers, type Hex, type HttpResponse, isStream } from '../kernel/values.ts';
import { IncomingRequest } from './request.ts';
import { ENDPOINTS, NO_ROUTE, routerOf, unrouted } from './routes.ts';
import { pour, responseTo, send } from './send.ts';

/** Most requests under way; further ones are shed. */
const MOST_UNDER_WAY = 4096;
/** Milliseconds in which a client may send the rest of a body that was refused. */
const DISCARD_TIMEOUT_MS = 5000;
const none: Headers = Object.freeze({});
/** The path of an endpoint, as nearly all clients write it. */
const ENDPOINT_URL = /^\/endpoints\/0x[0-9a-fA-F]{64}$/;

/** What the app gets from the service. */
export interface AppOptions {
  readonly plugins: PluginSet;
  /** Its `failed` is also called with failures outside the pipeline: at `admit`, in a route's handler, in a body that streams. */
  readonly runtime: Runtime;
  /** Makes a request's id. */
  newId(): Hex;
  /** Checks a response. @throws Error if HTTP cannot carry it. */
  check(response: HttpResponse): HttpResponse;
}

/** The state that the middleware of one request shares. */
interface RequestState {
  /** Set by the route's middleware. */
  request?: IncomingRequest;
  response?: HttpResponse;
  /** Ends the body, if it streams. */
  endStream?: () => void;
}

type AppContext = Context & { readonly state: RequestState };
type Answer = (request: IncomingRequest, ctx: Context) => Promise<HttpResponse>;

/** The koa app of one config. Its middleware: errors and headers, the router, then refusals where no route matches. */
export class HttpApp {
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  readonly #options: AppOptions;
  readonly #streams = new Set<() => void>();
  #isEnding = false;
  #underWay = 0;

  /** @throws RegistrationError for a route that no router can serve. */
  constructor(options: AppOptions) {
    this.#options = options;
    const app = new Koa();
    // A client that leaves is no error, and failures are reported elsewhere.
    app.on('error', () => undefined);
    const { plugins, runtime } = options;
    const endpoints = this.#middlewareFor(ENDPOINTS, true, (request) => serve(plugins, runtime, request));
    const router = routerOf(plugins.plugins, endpoints, (route) => this.#routeMiddleware(route));
    // Counted here until its work ends, and in `#handleRequest` until its response closes: a client may leave before.
    app.use((ctx, next) => plugins.running.track(() => this.#handleRequest(ctx, next)));
    app.use(endpointFirst(endpoints));
    app.use(router.routes() as Middleware);
    app.use((ctx) => {
      const [route, refusal] = unrouted(ctx.matched);
      this.#createRequest(ctx, route);
      throw refusal;
    });
    this.handle = app.callback();
  }

  /** Ends all bodies that stream, and each that begins later: they may have no end of their own. */
  endStreams(): void {
    this.#isEnding = true;
    for (const end of this.#streams) end();
  }

  /** The outermost middleware, which sends exactly one response whatever happens inside. */
  async #handleRequest(ctx: AppContext, next: () => Promise<unknown>): Promise<void> {
    const { state, req, res } = ctx;
    this.#underWay += 1;
    this.#options.plugins.running.add();
    // `send` writes the response, with less work than koa.
    ctx.respond = false;
    res.on('close', () => this.#close(ctx));
    try {
      await next();
    } catch (error) {
      state.response = this.#refused(ctx, error);
    }
    const { request, response } = state;
    try {
      if (request === undefined || response === undefined) throw new Error('nothing answers');
      const { exchange } = request;
      const common = await this.#options.plugins.hooks.respond.ask([none, exchange]);
      if (!exchange.abandoned && !res.destroyed) send(res, response, { 'X-Request-Id': exchange.requestId, ...common });
      if (isStream(response.body)) this.#stream(ctx, response.body, request);
    } catch {
      // No response will come, so the connection ends.
      res.destroy();
    }
    if (!req.complete) discard(req);
  }

  /** Returns middleware that admits a request, and then has it answered. */
  #middlewareFor(path: string, admit: Route['admit'], answer: Answer): Middleware {
    return async (ctx: AppContext) => {
      const request = this.#createRequest(ctx, path);
      if (admit !== false && this.#underWay > MOST_UNDER_WAY)
        throw new Refusal(503, 'Server busy', { headers: { 'Retry-After': '1' }, fault: false, failureClass: 'busy' });
      // With `asked`, the requests that the route makes are admitted instead.
      if (admit === true) await this.#options.plugins.hooks.admit.ask([request.exchange]);
      ctx.state.response = await answer(request, ctx);
    };
  }

  /** Returns the middleware of a plugin's route. */
  #routeMiddleware(route: Route): Middleware {
    const { path, admit, maxBody = 0 } = route;
    const key = routeKey(route);
    return this.#middlewareFor(path, admit, async ({ exchange, httpRequest }, { params, querystring }) => {
      const body = maxBody > 0 ? await httpRequest.readBody(maxBody) : new Uint8Array();
      const request = { params, query: new URLSearchParams(`?${querystring}`), body };
      const response = await this.#options.plugins.hooks.route.ask([request, exchange], key);
      return response ?? refuse('route', refusals.internal(`nothing serves ${key}`));
    });
  }

  #createRequest(ctx: AppContext, route: string): IncomingRequest {
    const request = new IncomingRequest(ctx, route, this.#options.newId());
    ctx.state.request = request;
    return request;
  }

  #stream({ state, res }: AppContext, body: BodyStream, request: IncomingRequest): void {
    const { exchange } = request;
    const stage = exchange.resolved === undefined ? 'route' : 'present';
    const end = pour(body, res, (error) => {
      // An error that names a stage came from the pipeline, which has reported it.
      if (asRefusal(error).stage === undefined) this.#options.runtime.failed(exchange, asRefusal(error, stage));
    });
    state.endStream = end;
    if (!res.destroyed) this.#streams.add(end);
    if (this.#isEnding || res.destroyed) end();
    // Tasks for later run after the stream has sent what it has at once.
    setImmediate(() => request.setResponded());
  }

  /** Ends a request, once its response is out or its client has left. */
  #close({ state, res }: AppContext): void {
    this.#underWay -= 1;
    const { request, endStream } = state;
    if (endStream !== undefined) {
      this.#streams.delete(endStream);
      endStream();
    }
    if (request !== undefined) {
      // A stream counts as answered even when it was cut short, since its head is out. What still works for it is aborted.
      const isAnswered = res.writableFinished || endStream !== undefined;
      if (!res.writableFinished || endStream !== undefined) control.disconnect(request.exchange);
      this.#options.plugins.observer.response?.(request.exchange, isAnswered ? res.statusCode : 499);
    }
    request?.setResponded();
    this.#options.plugins.running.done();
  }

  #refused(ctx: AppContext, error: unknown): HttpResponse {
    const { request } = ctx.state;
    // No request was begun if the router could not read the target, such as `http://[/`.
    const { exchange } = request ?? this.#createRequest(ctx, NO_ROUTE);
    const refusal = request === undefined ? new Refusal(404, 'Not Found') : asRefusal(error);
    // The pipeline has concluded and reported its own refusals.
    if (control.setOutcome(exchange, { kind: 'refused', refusal })) this.#options.runtime.failed(exchange, refusal);
    try {
      return this.#options.check(responseTo(refusal));
    } catch {
      return responseTo(refusals.internal('a refusal that HTTP cannot carry'));
    }
  }
}

/** Reads and drops the rest of a body for a while, so that a client which still sends it reads the response. */
function discard(request: IncomingMessage): void {
  const timer = setTimeout(() => request.socket.destroy(), DISCARD_TIMEOUT_MS).unref();
  request.once('close', () => clearTimeout(timer)).resume();
}

/** A shortcut past the router, which would find the same middleware: nearly every request is for an endpoint. */
function endpointFirst(endpoints: Middleware): Middleware {
  return (ctx, next) => {
    const { method, url = '' } = ctx.req;
    if (method !== 'POST' || !ENDPOINT_URL.test(url)) return next();
    ctx.params = { endpointId: url.slice('/endpoints/'.length) };
    return endpoints(ctx, next);
  };
}
