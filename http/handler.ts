import { type IncomingMessage, METHODS } from 'node:http';
import Router from '@koa/router';
import Koa, { type Context } from 'koa';
import { control, type Exchange } from '../kernel/exchange.ts';
import { guardedRoute } from '../kernel/guard.ts';
import { JsonText } from '../kernel/json-text.ts';
import type { Call } from '../kernel/ledger.ts';
import type { Pipeline } from '../kernel/pipeline.ts';
import { asRefusal, type Refusal, refusals } from '../kernel/refusal.ts';
import { RegistrationError, type Route, type Sealed } from '../kernel/registry.ts';
import type { Reply } from '../kernel/stages.ts';
import type { Arrived } from './connections.ts';
import { send } from './send.ts';
import { type PathParameters, Visit } from './visit.ts';

/** Told of what went wrong before and beside the pipeline: at the gate, in a route's handler, with a reply's form. */
export type Failed = (exchange: Exchange, refusal: Refusal) => void;

/** What serves the requests of one route. */
interface Target {
  /** As it stands in logs and metrics. */
  readonly route: string;
  /** Whether a request must be let in first, and may be shed. */
  readonly admit: boolean;
  answer(visit: Visit): Promise<Reply> | Reply;
}

const ENDPOINTS = '/endpoints/:endpointId';
const ENDPOINT = /^\/endpoints\/(0x[0-9a-fA-F]{64})$/;

/** Handles HTTP requests from their headers to the last byte of their responses, by a pipeline and the routes of its plugins. */
export class HttpHandler {
  readonly #sealed: Sealed;
  readonly #pipeline: Pipeline;
  readonly #failed: Failed;
  readonly #closed: () => void;
  readonly #app = new Koa();
  /** Routes of any path, by method. */
  readonly #anywhere = new Map<string, Target>();
  readonly #endpoints: Target = {
    route: ENDPOINTS,
    admit: true,
    answer: ({ exchange, params, arrival, later }) =>
      this.#pipeline.serve(exchange, params.endpointId ?? '', arrival, later),
  };
  readonly #nowhere = this.#refusing('(no route)', refusals.notFound());
  readonly #byRouter: ReturnType<Koa['callback']>;

  /**
   * @param closed told of the end of every response, once each.
   * @throws RegistrationError for a route that no router can serve.
   */
  constructor(sealed: Sealed, pipeline: Pipeline, failed: Failed, closed: () => void) {
    this.#sealed = sealed;
    this.#pipeline = pipeline;
    this.#failed = failed;
    this.#closed = closed;
    const router = new Router({ strict: true, sensitive: true });
    router.post(ENDPOINTS, (ctx) => this.#serveInKoa(this.#endpoints, ctx));
    for (const { name, budget, plugin } of sealed.plugins) {
      for (const route of plugin.routes ?? []) this.#add(router, { plugin: name, budget }, route);
    }
    const otherwise = (ctx: Context) => this.#serveInKoa(this.#otherwise(ctx), ctx);
    this.#app.use((ctx, next) => (hasPath(ctx) ? next() : otherwise(ctx)));
    this.#app.use(router.routes());
    this.#app.use(otherwise);
    // Koa reports here what a middleware let through and what sockets do; the first is none of ours, the second no news.
    this.#app.on('error', () => undefined);
    this.#byRouter = this.#app.callback();
  }

  handle(arrived: Arrived): void {
    const { request, response } = arrived;
    // The router would find the same; nearly every request is one of these.
    const endpointId = request.method === 'POST' ? ENDPOINT.exec(request.url ?? '')?.[1] : undefined;
    if (endpointId !== undefined) {
      this.#serve(this.#endpoints, arrived, { endpointId });
      return;
    }
    inRouter.set(request, arrived);
    void this.#byRouter(request, response);
  }

  #add(router: Router, tap: { plugin: string; budget: number | 'none' }, { method, path, admit, handle }: Route): void {
    const target: Target = {
      route: path,
      admit,
      answer: ({ exchange, params }) => {
        const handler = (call: Call) => handle(exchange, call, params);
        return guardedRoute(tap, exchange, handler, this.#sealed.house).catch((error) => this.#report(exchange, error));
      },
    };
    const fail = (why: string) => new RegistrationError(`plugin "${tap.plugin}": route ${method} ${path}: ${why}`);
    if (!METHODS.includes(method.toUpperCase())) throw fail('there is no such method');
    if (path === '*') {
      this.#anywhere.set(method.toUpperCase(), target);
      return;
    }
    try {
      router.register(path, [method.toLowerCase()], (ctx) => this.#serveInKoa(target, ctx));
    } catch (error) {
      throw fail(error instanceof Error ? error.message : String(error));
    }
  }

  /** What serves a request that no route of its own does. */
  #otherwise(ctx: Context): Target {
    const anywhere = this.#anywhere.get(ctx.method) ?? (ctx.method === 'HEAD' ? this.#anywhere.get('GET') : undefined);
    if (anywhere !== undefined) return anywhere;
    const matched: readonly { path: unknown; methods: string[] }[] = ctx.matched ?? [];
    const methods = new Set(matched.flatMap((layer) => layer.methods));
    const [first] = matched;
    if (first === undefined || methods.size === 0) return this.#nowhere;
    return this.#refusing(String(first.path), refusals.methodNotAllowed([...methods].join(', ')));
  }

  #refusing(route: string, refusal: Refusal): Target {
    return { route, admit: false, answer: () => this.#replyTo(refusal) };
  }

  #serveInKoa(target: Target, ctx: Context): void {
    ctx.respond = false;
    const arrived = inRouter.get(ctx.req);
    if (arrived === undefined) throw new Error('koa has a request that did not arrive');
    this.#serve(target, arrived, ctx.params ?? {}, ctx);
  }

  #serve(target: Target, arrived: Arrived, params: PathParameters, ctx?: Context): void {
    const { response } = arrived;
    const visit = new Visit(target.route, arrived, params, this.#app, ctx);
    response.once('close', () => {
      const isOut = response.writableFinished;
      if (!isOut) control.disconnect(visit.exchange);
      this.#sealed.house.observer.response?.(visit.exchange, isOut ? response.statusCode : 499);
      this.#closed();
      visit.close();
    });
    void this.#respond(target, visit);
  }

  async #respond(target: Target, visit: Visit): Promise<void> {
    const { exchange, arrived } = visit;
    const { response } = arrived;
    try {
      const { status, headers, body } = await this.#reply(target, visit);
      const common = await this.#pipeline.headers(exchange);
      if (exchange.abandoned || response.destroyed) return;
      const text = JsonText.is(body) ? body.json : body;
      const own = { ...(text !== '' && JSON_TYPE), 'X-Request-Id': exchange.requestId };
      send(arrived, { status, headers: [own, common, headers], body: text });
    } catch {
      // What cannot be sent must not be waited for.
      response.destroy();
    }
  }

  async #reply({ admit, answer }: Target, visit: Visit): Promise<Reply> {
    try {
      if (admit) await this.#admit(visit);
      return await answer(visit);
    } catch (error) {
      return this.#replyTo(asRefusal(error));
    }
  }

  async #admit({ exchange, arrived }: Visit): Promise<void> {
    try {
      if (arrived.overloaded) throw refusals.overloaded();
      await this.#pipeline.admit(exchange);
    } catch (error) {
      this.#report(exchange, error);
    }
  }

  #report(exchange: Exchange, error: unknown): never {
    const refusal = asRefusal(error);
    if (refusal.failure) this.#failed(exchange, refusal);
    throw refusal;
  }

  #replyTo({ status, headers, body }: Refusal): Reply {
    const reply = { status, headers, body: JsonText.stringify(body) };
    try {
      this.#sealed.house.shapes.route?.(reply, []);
      return reply;
    } catch {
      return this.#replyTo(refusals.internal('a refusal that HTTP cannot carry'));
    }
  }
}

const JSON_TYPE = { 'Content-Type': 'application/json' };

/** Requests that are with koa, which knows nothing of connections. */
const inRouter = new WeakMap<IncomingMessage, Arrived>();

/** Whether the request target can be read at all: koa parses it on demand and throws for such as `http://[/`. */
function hasPath(ctx: Context): boolean {
  try {
    return ctx.path !== undefined;
  } catch {
    return false;
  }
}
