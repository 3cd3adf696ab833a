import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import Router from '@koa/router';
import Koa, { type Context } from 'koa';
import { Exchange } from './exchange.ts';
import { guardedRoute } from './guard.ts';
import type { Call } from './ledger.ts';
import type { Later, Pipeline } from './pipeline.ts';
import { asRefusal, type Refusal, refusals } from './refusal.ts';
import type { Sealed } from './registry.ts';
import type { Arrival, Awaitable, Headers, Reply } from './stages.ts';

/** Told of what went wrong before and beside the pipeline: at the gate, in a route's handler, with a reply's form. */
export type Failed = (exchange: Exchange, refusal: Refusal) => void;

/** Handles one HTTP request, from its headers to the last byte of the response. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * A handler in front of a pipeline and the routes of its plugins.
 * @param closed told of the end of every response, once each.
 */
export function createHandler(sealed: Sealed, pipeline: Pipeline, failed: Failed, closed: () => void): Handler {
  const { observer } = sealed.house;
  const app = new Koa();
  const router = new Router({ strict: true, sensitive: true });
  const report = (exchange: Exchange, error: unknown): never => {
    const refusal = asRefusal(error);
    if (refusal.failure) failed(exchange, refusal);
    throw refusal;
  };
  const replyTo = (refusal: Refusal): Reply => {
    try {
      const reply = { status: refusal.status, headers: refusal.headers, body: JSON.stringify(refusal.body) };
      if (reply.status >= 400 && sealed.house.shapes.route?.(reply) !== false) return reply;
    } catch {
      // A plugin's body that JSON cannot carry.
    }
    return replyTo(refusals.internal('a refusal that HTTP cannot carry'));
  };
  const admit = (exchange: Exchange): Awaitable<unknown> => {
    try {
      const admission = pipeline.admit(exchange);
      return admission instanceof Promise ? admission.catch((error) => report(exchange, error)) : undefined;
    } catch (error) {
      return report(exchange, error);
    }
  };
  const respond = async (question: Question, admitted: boolean, answer: Answering): Promise<void> => {
    const {
      exchange,
      incoming: { response },
    } = question;
    try {
      let reply: Reply;
      try {
        const admission = admitted ? admit(exchange) : undefined;
        if (admission instanceof Promise) await admission;
        reply = await answer(question);
      } catch (error) {
        reply = replyTo(asRefusal(error));
      }
      let headers = pipeline.headers(exchange);
      if (headers instanceof Promise) headers = await headers;
      if (!exchange.abandoned && !response.destroyed) send(response, exchange, reply, headers);
    } catch {
      // What cannot be sent must not be waited for.
      response.destroy();
    }
  };
  const serve =
    (route: string, admitted: boolean, answer: Answering) => (incoming: Incoming, params: PathParameters) => {
      const { request, response } = incoming;
      const exchange = exchangeOf(request, route);
      const tasks: Task[] = [];
      let over = false;
      response.on('close', () => {
        if (over) return;
        over = true;
        if (!response.writableFinished) exchange.disconnect();
        observer.response?.(exchange, response.writableFinished ? response.statusCode : 499);
        closed();
        for (const task of tasks.splice(0)) task();
      });
      const later = (task: Task) => {
        if (over) task();
        else tasks.push(task);
      };
      void respond({ exchange, incoming, params, later }, admitted, answer);
    };
  const endpoints = '/endpoints/:endpointId';
  const ask = serve(endpoints, true, ({ exchange, incoming, params, later }) =>
    pipeline.serve(exchange, params.endpointId ?? '', incoming, later),
  );
  const koaHandler = (handle: Handle) => (ctx: Context) => {
    ctx.respond = false;
    handle(new Incoming(ctx.req, ctx.res, app, ctx), ctx.params ?? {});
  };
  router.post(endpoints, koaHandler(ask));
  const anywhere = new Map<string, (ctx: Context) => void>();
  for (const {
    name: plugin,
    budget,
    plugin: { routes = [] },
  } of sealed.plugins) {
    for (const route of routes) {
      const handle = koaHandler(
        serve(route.path, route.admit, ({ exchange, params }) => {
          const handler = (call: Call) => route.handle(exchange, call, params);
          const work = guardedRoute({ plugin, budget }, exchange, handler, sealed.house);
          return work.catch((error) => report(exchange, error));
        }),
      );
      if (route.path === '*') anywhere.set(route.method, handle);
      else router.register(route.path, [route.method.toLowerCase()], handle);
    }
  }
  const nowhere = koaHandler(serve('(no route)', false, async () => replyTo(refusals.notFound())));
  app.use((ctx, next) => {
    const handle = anywhere.get(ctx.method);
    if (handle !== undefined) return handle(ctx);
    return hasPath(ctx) ? next() : nowhere(ctx);
  });
  app.use(router.routes());
  app.use((ctx) => {
    const methods = new Set(ctx.matched?.flatMap((layer: { methods: string[] }) => layer.methods));
    if (methods.size === 0) return nowhere(ctx);
    const refusal = refusals.methodNotAllowed([...methods].join(', '));
    return koaHandler(serve(String(ctx.matched[0].path), false, async () => replyTo(refusal)))(ctx);
  });
  // Koa reports here what a middleware let through and what sockets do; the first is none of ours, the second no news.
  app.on('error', () => undefined);
  const handle = app.callback();
  return (request, response) => {
    // The router would find the same; nearly every request is one of these.
    const endpointId = request.method === 'POST' ? ENDPOINT.exec(request.url ?? '')?.[1] : undefined;
    if (endpointId === undefined) handle(request, response);
    else ask(new Incoming(request, response, app), { endpointId });
  };
}

const ENDPOINT = /^\/endpoints\/(0x[0-9a-fA-F]{64})$/;

/** A server with the limits that every handler needs. */
export function createHttpServer(handle: Handler): Server {
  const server = createServer(handle);
  // Only `100-continue` has a meaning; what else a client expects is no reason for a bare 417 (RFC 9110, section 10.1.1).
  server.on('checkExpectation', handle);
  server.requestTimeout = 30_000;
  server.headersTimeout = 10_000;
  // Longer than nginx and AWS keep an idle connection (60 seconds): whoever closes first must be the client, or a request
  // that is on its way meets a closed door.
  server.keepAliveTimeout = 75_000;
  return server;
}

type Task = () => void;

type PathParameters = Readonly<Record<string, string>>;

/** Serves a request of one route. */
type Handle = (incoming: Incoming, params: PathParameters) => void;

/** What there is to answer. */
interface Question {
  readonly exchange: Exchange;
  readonly incoming: Incoming;
  readonly params: PathParameters;
  readonly later: Later;
}

type Answering = (question: Question) => Promise<Reply>;

/** A request with the response that it waits for. */
class Incoming implements Arrival {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly #app: Koa;
  #ctx: Context | undefined;

  constructor(request: IncomingMessage, response: ServerResponse, app: Koa, ctx?: Context) {
    this.request = request;
    this.response = response;
    this.#app = app;
    this.#ctx = ctx;
  }

  get ctx(): Context {
    this.#ctx ??= this.#app.createContext(this.request, this.response);
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

/** Whether the request target can be read at all: koa parses it on demand and throws for such as `http://[/`. */
function hasPath(ctx: Context): boolean {
  try {
    return ctx.path !== undefined;
  } catch {
    return false;
  }
}

function send(response: ServerResponse, exchange: Exchange, reply: Reply, headers?: Headers): void {
  const { status, body } = reply;
  response.statusCode = status;
  // One by one: what comes later replaces what came before, whatever the case of its name.
  if (body !== '') response.setHeader('Content-Type', 'application/json');
  response.setHeader('X-Request-Id', exchange.requestId);
  for (const name in headers) response.setHeader(name, headers[name] ?? '');
  for (const name in reply.headers) response.setHeader(name, reply.headers[name] ?? '');
  if (body !== '') response.setHeader('Content-Length', Buffer.byteLength(body));
  response.end(body);
}
