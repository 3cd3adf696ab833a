/** A connection that the system refuses to a server ends nothing, and is said in the log. */
import assert from 'node:assert/strict';
import { Server } from 'node:net';
import { it } from 'node:test';
import { scrape } from '../support/metrics.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';

it('connections that cannot be accepted are one line for each server, and both go on', async (t) => {
  const upstream = await upstreamFor(t);
  upstream.json('/a', 1);
  const servers: Server[] = [];
  const { listen } = Server.prototype;
  t.mock.method(Server.prototype, 'listen', function (this: Server, ...args: unknown[]) {
    servers.push(this);
    return Reflect.apply(listen, this, args);
  });
  const service = await serviceFor(t, oneApi(upstream.url, { a: {} }, { settings: { metrics: { port: 0 } } }));
  // What Node emits where a connection cannot be accepted.
  for (const server of [...servers, ...servers]) server.emit('error', new Error('accept ENOMEM'));
  assert.equal(servers.length, 2);
  const said = service.logs.flatMap(({ level, message, fields }) => {
    return message.includes('cannot be accepted') ? [[level, message, fields]] : [];
  });
  const fields = { detail: 'accept ENOMEM' };
  assert.deepEqual(said.toSorted(), [
    ['warn', 'connections cannot be accepted', fields],
    ['warn', 'connections to the metrics cannot be accepted', fields],
  ]);
  assert.equal((await service.post('api/a')).status, 200);
  assert.ok((await scrape(service)).types.size > 0);
});
