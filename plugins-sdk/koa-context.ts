import type { Context } from 'koa';
import type { HttpRequest } from './kernel.ts';

/** Koa's view of a request, for its middleware. The kernel, which hands it on, knows nothing of koa. */
export function koaContext({ ctx }: HttpRequest): Context {
  return ctx as Context;
}
