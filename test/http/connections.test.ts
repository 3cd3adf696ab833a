/** A connection has a bounded number of requests under way, and ends with the answer to its last one. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import cluster from 'node:cluster';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { describe, it } from 'node:test';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { drain } from '../../http/drain.ts';
import { listen, urlOf } from '../../lib/http/listen.ts';
import { limitConnections } from '../../plugins-sdk/connection-limits.ts';
import { block } from '../support/fuzz/situation.ts';
import { openRaw, type RawConnection } from '../support/raw-http.ts';
import { GET, gets, pipelined, reply, startTestServer } from './server.ts';

describe('the requests of a connection', () => {
  it('are answered in their order, sixteen at a time', async (t) => {
    const server = await startTestServer(t, {});
    const client = openRaw(server.url);
    client.write(pipelined(16));
    for (let i = 15; i >= 0; i--) reply(await server.at(`/${i}`), `</${i}>`);
    await client.until((text) => text.endsWith('</15>'));
    const bodies = [...client.text.matchAll(/<\/(\d+)>/g)].map(([, digits]) => Number(digits));
    assert.deepEqual(bodies, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    client.destroy();
  });

  it('end it with the 17th that is under way, and all of them are over', async (t) => {
    const server = await startTestServer(t, {});
    const client = openRaw(server.url);
    client.write(pipelined(500));
    assert.equal(await client.closed, '');
    await server.until(() => server.closed.size === 16);
    assert.deepEqual([server.arrived.length, server.open.size], [16, 0]);
  });

  it('are as many as the client wants, one after the other', async (t) => {
    const server = await startTestServer(t, { requests: 1 }, (arrived) => void reply(arrived));
    const client = openRaw(server.url);
    for (let count = 1; count <= 40; count++) {
      client.write(GET);
      await client.until((text) => text.split('answer').length === count + 1);
    }
    client.destroy();
  });

  it('are over when it closes, those that wait for others as well', async (t) => {
    const server = await startTestServer(t, {});
    const client = openRaw(server.url);
    client.write(pipelined(3));
    await server.at('/2');
    client.destroy();
    await server.until(() => server.closed.size === 3 && server.open.size === 0);
  });

  it('are over when the client ends its side: it counts as gone', async (t) => {
    const server = await startTestServer(t, {});
    const client = openRaw(server.url);
    client.write(GET);
    await server.at('/');
    client.end();
    await server.until(() => server.closed.size === 1 && server.open.size === 0);
  });

  it('end it with the answer to one that wishes for another protocol, which is ignored', async (t) => {
    const server = await startTestServer(t, {}, (arrived) => void reply(arrived, `<${arrived.request.url}>`));
    const client = openRaw(server.url);
    const wish = 'GET /upgrade HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
    client.write(`${wish}${gets('/ready')}`);
    assert.match(await client.closed, /Connection: close\r\n\r\n<\/upgrade>$/);
    assert.equal(server.arrived.length, 1);
  });
});

it('connections that come all at once wait to be accepted, and for no second packet', async (t) => {
  const most = Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'));
  if (most < 1000) return t.skip('the system lets fewer wait');
  const server = createServer();
  await listen(server, { host: '127.0.0.1', port: 0 });
  t.after(() => server.close());
  const client = `
    const open = () => new Promise((resolve) => require('net').connect(${new URL(urlOf(server)).port}, '127.0.0.1', resolve));
    Promise.all(Array.from({ length: 1000 }, open)).then(() => process.exit());`;
  // This process accepts none meanwhile.
  assert.equal(spawnSync(process.execPath, ['-e', client], { timeout: 10_000 }).status, 0);
});

describe('a connection of a server that stops', () => {
  it('ends with the answer to the last request that came before, and begins none behind it', async (t) => {
    const server = await startTestServer(t, {});
    const client = openRaw(server.url);
    client.write(pipelined(2));
    const [first, last] = [await server.at('/0'), await server.at('/1')];
    const stopped = drain(server.server, server.connections, 0);
    client.write(gets('/late'));
    reply(first, '<0>');
    reply(last, '<1>');
    assert.match(await client.closed, /^[^<]*keep-alive[^<]*<0>[^<]*Connection: close\r\n\r\n<1>$/);
    assert.equal(server.arrived.length, 2);
    await stopped;
  });

  it('is accepted for a while, and ends with its answer', async (t) => {
    const server = await startTestServer(t, {}, (arrived) => void reply(arrived));
    const stopped = drain(server.server, server.connections, 300);
    const client = openRaw(server.url);
    client.write(GET);
    assert.match(await client.closed, /Connection: close\r\n\r\nanswer$/);
    await stopped;
  });

  it('gets its answer where the system cannot accept another one', async (t) => {
    const server = await startTestServer(t, {}, (arrived) => void reply(arrived));
    server.server.on('error', () => undefined);
    const stopped = drain(server.server, server.connections, 50);
    await setTimeout(20);
    const client = openRaw(server.url);
    client.write(GET);
    server.server.once('connection', () => server.server.emit('error', new Error('accept ENOBUFS')));
    // The connection waits to be accepted until the port closes.
    block(50);
    assert.match(await client.closed, /answer$/);
    await stopped;
  });

  it('has a second for its first byte once it is read, however long others were accepted before', async (t) => {
    const server = await startTestServer(t, {}, (arrived) => void reply(arrived));
    const stopped = drain(server.server, server.connections, 0);
    server.server.on('connection', () => block(600));
    const clients = [openRaw(server.url), openRaw(server.url)];
    await server.until(() => !server.server.listening);
    // Silent connections have been looked for by then.
    await setTimeout(100);
    for (const client of clients) client.write(GET);
    for (const { closed } of clients) assert.match(await closed, /Connection: close\r\n\r\nanswer$/);
    await stopped;
  });

  it('is not held back for long in a worker, however steadily others come', async (t) => {
    const server = await startTestServer(t, {}, (arrived) => void reply(arrived));
    Object.assign(cluster, { isWorker: true });
    t.after(() => Object.assign(cluster, { isWorker: false }));
    const clients: RawConnection[] = [];
    t.mock.method(performance, 'now', () => clients.length * 10);
    // Each one that is accepted is followed by another.
    server.server.on('connection', () => clients.push(openRaw(server.url)));
    server.server.on('newListener', (event) => {
      if (event !== 'connection') return;
      clients.push(openRaw(server.url));
      // A busy worker sees it later than its own timer.
      process.nextTick(() => block(30));
    });
    const stopped = drain(server.server, server.connections, 0);
    await server.until(() => clients.length > 0);
    const [held] = clients;
    held?.write(GET);
    assert.match((await held?.closed) ?? '', /Connection: close\r\n\r\nanswer$/);
    assert.ok(clients.length < 1000);
    for (const client of clients) client.destroy();
    await stopped;
  });

  it('is answered in a worker that takes a while to accept all that wait', async (t) => {
    const server = await startTestServer(t, {}, (arrived) => void reply(arrived));
    Object.assign(cluster, { isWorker: true });
    t.after(() => Object.assign(cluster, { isWorker: false }));
    let now = 0;
    t.mock.method(performance, 'now', () => now);
    server.server.on('connection', () => {
      now += 4;
      // So that not all are accepted in one turn.
      block(4);
    });
    const clients = Array.from({ length: 50 }, () => openRaw(server.url));
    for (const client of clients) client.write(GET);
    await drain(server.server, server.connections, 0);
    for (const { closed } of clients) assert.match(await closed, /Connection: close\r\n\r\nanswer$/);
  });

  it('is answered where more wait to be accepted than there is room for', async (t) => {
    const server = await startTestServer(t, {}, async (arrived) => {
      // Turns of the event loop, of which each accepts one connection: they do not depend on how busy the machine is.
      for (let turn = 0; turn < 10; turn++) await setImmediate();
      reply(arrived);
    });
    limitConnections(
      server.server,
      () => ({ max: 50, perAddress: 50 }),
      () => undefined,
    );
    const clients = Array.from({ length: 400 }, () => openRaw(server.url));
    for (const client of clients) client.write(GET);
    await drain(server.server, server.connections, 0);
    const texts = await Promise.all(clients.map(({ closed }) => closed));
    // Each time that all room is held, one is closed.
    assert.ok(texts.filter((text) => text.endsWith('answer')).length > 350);
  });
});

describe('a request for several hosts, or none', () => {
  const refused = 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n';
  for (const hosts of [['Host: a', 'Host: b'], ['Host: a', 'HOST: a'], []]) {
    const request = `${['GET / HTTP/1.1', ...hosts].join('\r\n')}\r\n\r\n`;

    it(`is 400 behind the answers before it, and ends the connection: ${hosts.join(', ') || 'none'}`, async (t) => {
      const server = await startTestServer(t, {});
      const client = openRaw(server.url);
      client.write(gets('/slow') + request.repeat(3));
      reply(await server.at('/slow'));
      assert.match(await client.closed, new RegExp(`^HTTP/1.1 200 OK\r\n[^]*\r\n\r\nanswer${refused}$`));
      assert.equal(server.arrived.length, 1);
    });
  }

  it('is none of HTTP/1.0, which knows no hosts', async (t) => {
    const server = await startTestServer(t, {}, (arrived) => void reply(arrived));
    const client = openRaw(server.url);
    client.write('GET / HTTP/1.0\r\n\r\n');
    assert.match(await client.closed, /^HTTP\/1\.1 200 OK\r\n[\s\S]*answer$/);
  });
});
