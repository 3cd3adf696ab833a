import { createServer } from 'node:http';
import Router from '@koa/router';
import Koa, { type Context } from 'koa';
import { koaBody } from 'koa-body';
import { listen, urlOf } from '../../lib/http/listen.ts';
import { answers, isAllowed, log } from './answers.ts';

/** The floor: {@link answers} on koa, its router and koa-body, with a log line. */

const app = new Koa();
const router = new Router();
for (const [path, answer] of Object.entries(answers)) {
  router.post(path, koaBody({ jsonLimit: '64kb', urlencoded: false, text: false }), async (ctx: Context) => {
    const started = performance.now();
    if (isAllowed(ctx.headers)) {
      const body = answer(ctx.request.body);
      ctx.body = typeof body === 'string' ? body : await body;
      ctx.type = 'application/json';
    } else ctx.status = 401;
    log.info({ path, status: ctx.status, milliseconds: performance.now() - started });
  });
}
app.use(router.routes());
const server = createServer(app.callback());
await listen(server, { port: 0, host: '127.0.0.1' });
process.stdout.write(`listening on ${urlOf(server)}\n`);
