import Koa from 'koa';

/** The stack without any work: what no service built on koa can beat by much. */
const body = JSON.stringify({ status: 'ok' });
const app = new Koa();
app.use(async (ctx) => {
  for await (const _ of ctx.req);
  ctx.type = 'application/json';
  ctx.body = body;
});
const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address !== null && typeof address === 'object')
    process.stdout.write(`listening on http://127.0.0.1:${address.port}\n`);
});
