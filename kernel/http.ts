import { createServer, type Server } from 'node:http';
import Router from '@koa/router';
import Koa, { type Context } from 'koa';
import { koaBody } from 'koa-body';
import { Exchange, type Parameters } from './exchange.ts';
import { guardedCall } from './guard.ts';
import type { Pipeline } from './pipeline.ts';
import { asRefusal, type Refusal, refusals } from './refusal.ts';
import type { Sealed } from './registry.ts';
import type { Reply } from './stages.ts';

/** Bytes of a request body, as received. */
export const BODY_LIMIT = 65_536;
const MAX_DEPTH = 256;

/** Told of every response, once it is on its way or the client is gone. */
export type Served = (exchange: Exchange, status: number) => void;

/** An HTTP server in front of a pipeline and the routes of its plugins. */
export function createHttpServer(sealed: Sealed, pipeline: Pipeline, served: Served): Server {
  const app = new Koa();
  const router = new Router({ strict: true, sensitive: true });
  const serve = (route: string, answer: (exchange: Exchange, ctx: Context, later: Tasks) => Promise<Reply>) => {
    return async (ctx: Context) => {
      const exchange = exchangeOf(ctx, route);
      const tasks: Tasks = [];
      ctx.res.once('close', () => {
        if (!ctx.res.writableFinished) exchange.disconnect();
        served(exchange, ctx.res.writableFinished ? ctx.status : 499);
        for (const task of tasks.splice(0)) task();
      });
      const reply = await answer(exchange, ctx, tasks).catch((error) => replyTo(asRefusal(error)));
      send(ctx, exchange, reply, await pipeline.headers(exchange));
    };
  };
  const endpoints = '/endpoints/:endpointId';
  router.post(
    endpoints,
    serve(endpoints, async (exchange, ctx, tasks) => {
      await pipeline.admit(exchange);
      const id = exchange.params.endpointId ?? '';
      return pipeline.serve(
        exchange,
        id,
        () => readParameters(ctx),
        (task) => tasks.push(task),
      );
    }),
  );
  const anywhere = new Map<string, (ctx: Context) => Promise<void>>();
  for (const {
    name: plugin,
    budget,
    plugin: { routes = [] },
  } of sealed.plugins) {
    for (const route of routes) {
      const handle = serve(route.path, async (exchange) => {
        if (route.admit) await pipeline.admit(exchange);
        return guardedCall({ plugin, budget }, 'route', exchange, (call) => route.handle(exchange, call));
      });
      if (route.path === '*') anywhere.set(route.method, handle);
      else router.register(route.path, [route.method.toLowerCase()], handle);
    }
  }
  app.use(async (ctx, next) => (anywhere.get(ctx.method) ?? next)(ctx));
  app.use(router.routes());
  app.use(async (ctx) => {
    const methods = new Set(ctx.matched?.flatMap((layer: { methods: string[] }) => layer.methods));
    const refusal = methods.size === 0 ? refusals.notFound() : refusals.methodNotAllowed([...methods].join(', '));
    return serve(methods.size === 0 ? '(no route)' : String(ctx.matched[0].path), async () => replyTo(refusal))(ctx);
  });
  // Koa reports here what a middleware let through and what sockets do; the first is none of ours, the second no news.
  app.on('error', () => undefined);
  const server = createServer(app.callback());
  server.requestTimeout = 30_000;
  server.headersTimeout = 10_000;
  return server;
}

type Tasks = Array<() => void>;

function exchangeOf(ctx: Context, route: string): Exchange {
  return new Exchange({
    method: ctx.method,
    route,
    params: ctx.params ?? {},
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

function replyTo(refusal: Refusal): Reply {
  return { status: refusal.status, headers: refusal.headers, body: JSON.stringify(refusal.body) };
}

function send(ctx: Context, exchange: Exchange, reply: Reply, headers: Readonly<Record<string, string>>): void {
  if (exchange.abandoned || ctx.res.destroyed) {
    ctx.respond = false;
    return;
  }
  ctx.status = reply.status;
  ctx.set({ 'Content-Type': 'application/json', 'X-Request-Id': exchange.requestId, ...headers, ...reply.headers });
  if (reply.body !== '') ctx.body = reply.body;
  else ctx.remove('Content-Type');
}

const readText = koaBody({
  json: false,
  urlencoded: false,
  text: true,
  textTypes: ['application/json'],
  textLimit: BODY_LIMIT,
});

/**
 * The `parameters` of the request body.
 * @throws Refusal 415, 413 or 400, in this order.
 */
async function readParameters(ctx: Context): Promise<Parameters> {
  const { 'content-type': type = '', 'content-encoding': coding = 'identity' } = ctx.headers;
  if (type.split(';', 1)[0]?.trim().toLowerCase() !== 'application/json' || coding.toLowerCase() !== 'identity') {
    throw refusals.contentType();
  }
  try {
    await readText(ctx, async () => undefined);
  } catch (error) {
    throw (error as { status?: number }).status === 413 ? refusals.tooLarge() : refusals.invalidJson();
  }
  return parametersOf(String(ctx.request.body ?? ''));
}

function parametersOf(text: string): Parameters {
  if (text === '') return Object.freeze({});
  const body = parse(text);
  if (!isObject(body)) throw refusals.bodyNotObject();
  const { parameters = {} } = body;
  if (!isObject(parameters)) throw refusals.parametersNotObject();
  if (depth(parameters) > MAX_DEPTH) throw refusals.invalidJson();
  return freeze(parameters as Parameters);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw refusals.invalidJson();
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Levels of nesting, without recursion: the text may hold tens of thousands. */
function depth(root: unknown): number {
  let level: unknown[] = [root];
  let levels = 0;
  while (level.length > 0) {
    level = level.flatMap((value) => (typeof value === 'object' && value !== null ? Object.values(value) : []));
    levels += 1;
  }
  return levels;
}

function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const member of Object.values(value)) freeze(member);
  return Object.freeze(value);
}
