import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import Router from '@koa/router';
import Koa, { type Context } from 'koa';
import { Exchange } from './exchange.ts';
import { guardedRoute } from './guard.ts';
import type { Call } from './ledger.ts';
import type { Later, Pipeline } from './pipeline.ts';
import { asRefusal, type Refusal, refusals } from './refusal.ts';
import type { Sealed } from './registry.ts';
import type { Headers, Reply } from './stages.ts';

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
  const admit = async (exchange: Exchange): Promise<void> => {
    try {
      await pipeline.admit(exchange);
    } catch (error) {
      report(exchange, error);
    }
  };
  const serve = (route: string, answer: (exchange: Exchange, ctx: Context, later: Later) => Promise<Reply>) => {
    return (ctx: Context): void => {
      const { res } = ctx;
      ctx.respond = false;
      const exchange = exchangeOf(ctx, route);
      const tasks: Task[] = [];
      let over = false;
      res.once('close', () => {
        if (!res.writableFinished) exchange.disconnect();
        observer.response?.(exchange, res.writableFinished ? res.statusCode : 499);
        over = true;
        closed();
        for (const task of tasks.splice(0)) task();
      });
      const finish = async (reply: Reply) => {
        const headers = await pipeline.headers(exchange);
        if (!exchange.abandoned && !res.destroyed) send(res, exchange, reply, headers);
      };
      const later = (task: Task) => {
        if (over) task();
        else tasks.push(task);
      };
      answer(exchange, ctx, later)
        .then(finish, (error) => finish(replyTo(asRefusal(error))))
        // What cannot be sent must not be waited for.
        .catch(() => res.destroy());
    };
  };
  const endpoints = '/endpoints/:endpointId';
  const ask = serve(endpoints, async (exchange, ctx, later) => {
    await admit(exchange);
    return pipeline.serve(exchange, ctx.params.endpointId ?? '', ctx, later);
  });
  router.post(endpoints, ask);
  const anywhere = new Map<string, (ctx: Context) => void>();
  for (const {
    name: plugin,
    budget,
    plugin: { routes = [] },
  } of sealed.plugins) {
    for (const route of routes) {
      const handle = serve(route.path, async (exchange, { params = {} }) => {
        if (route.admit) await admit(exchange);
        const handler = (call: Call) => route.handle(exchange, call, params);
        const work = guardedRoute({ plugin, budget }, exchange, handler, sealed.house);
        return work.catch((error) => report(exchange, error));
      });
      if (route.path === '*') anywhere.set(route.method, handle);
      else router.register(route.path, [route.method.toLowerCase()], handle);
    }
  }
  const nowhere = serve('(no route)', async () => replyTo(refusals.notFound()));
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
    return serve(String(ctx.matched[0].path), async () => replyTo(refusal))(ctx);
  });
  // Koa reports here what a middleware let through and what sockets do; the first is none of ours, the second no news.
  app.on('error', () => undefined);
  const handle = app.callback();
  return (request, response) => {
    // The router would find the same; nearly every request is one of these.
    const endpointId = request.method === 'POST' ? ENDPOINT.exec(request.url ?? '')?.[1] : undefined;
    if (endpointId === undefined) {
      handle(request, response);
      return;
    }
    const ctx = app.createContext(request, response);
    ctx.params = { endpointId };
    ask(ctx);
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
  return server;
}

type Task = () => void;

function exchangeOf(ctx: Context, route: string): Exchange {
  return new Exchange({
    method: ctx.method,
    route,
    headers: flatten(ctx.headers),
    socketAddress: ctx.req.socket.remoteAddress ?? '',
  });
}

function flatten(headers: Context['headers']): Record<string, string | undefined> {
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

function send(response: ServerResponse, exchange: Exchange, reply: Reply, headers: Headers): void {
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
