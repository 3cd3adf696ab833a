import type { AddressInfo } from 'node:net';
import Router from '@koa/router';
import Koa, { type Context } from 'koa';
import { koaBody } from 'koa-body';
import { pino } from 'pino';

/** Answers one request; the body is parsed. */
export type Answer = (ctx: Context) => Promise<void> | void;

/**
 * The stack that every measured server stands on: koa, router, koa-body and one asynchronous log line per request. It
 * prints its address as soon as it listens.
 */
export function serve(routes: Readonly<Record<string, Answer>>): void {
  const log = pino({ base: null }, pino.destination({ dest: 1, sync: false, minLength: 4096 }));
  const app = new Koa();
  const router = new Router();
  for (const [path, answer] of Object.entries(routes)) {
    router.post(path, koaBody({ jsonLimit: '64kb', urlencoded: false, text: false }), async (ctx: Context) => {
      const started = performance.now();
      await answer(ctx);
      log.info({ path, status: ctx.status, milliseconds: performance.now() - started });
    });
  }
  app.use(router.routes());
  const server = app.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    process.stdout.write(`listening on http://127.0.0.1:${port}\n`);
  });
}
