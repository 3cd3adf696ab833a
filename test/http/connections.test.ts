import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { openRaw } from '../support/raw-http.ts';
import { reply, startTestServer } from './server.ts';

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const pipelined = (count: number, path = '/') =>
  Array.from({ length: count }, (_, i) => `GET ${path}${i} HTTP/1.1\r\nHost: a\r\n\r\n`).join('');
const MEBIBYTE = 'x'.repeat(1024 * 1024);

/** A client that reads nothing until it is told to. */
function deaf(t: TestContext, url: string, bytes: string): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.pause().on('error', () => undefined);
  socket.write(bytes);
  t.after(() => socket.destroy());
  return socket;
}

describe('the requests of a connection', () => {
  it('are answered a bounded number at a time, and the others are not even read', async (t) => {
    const server = await startTestServer(t, { requests: 4 });
    const client = openRaw(server.url);
    client.write(pipelined(10));
    await server.until(() => server.arrived.length === 4);
    await setTimeout(50);
    assert.equal(server.arrived.length, 4);
    // Each that is answered makes room for one.
    for (let i = 0; i < 10; i++) {
      await server.until(() => server.arrived.length > i);
      const [one] = server.arrived.slice(i);
      assert.ok(one);
      reply(one, `<${one.request.url}>`);
    }
    await client.until((text) => text.endsWith('</9>'));
    const bodies = [...client.text.matchAll(/<\/(\d)>/g)].map(([, digit]) => digit);
    assert.deepEqual(bodies, ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
    client.destroy();
  });

  it('are read on once there is room, bodies included', async (t) => {
    const server = await startTestServer(t, { requests: 2 }, async (arrived) => {
      let body = '';
      for await (const chunk of arrived.request) body += chunk;
      reply(arrived, `<${body.length}>`);
    });
    const client = openRaw(server.url);
    const post = (length: number) =>
      `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n${'x'.repeat(length)}`;
    client.write([100_000, 1, 70_000, 0, 300_000, 5].map(post).join(''));
    await client.until((text) => text.endsWith('<5>'));
    const bodies = [...client.text.matchAll(/<(\d+)>/g)].map(([, digits]) => digits);
    assert.deepEqual(bodies, ['100000', '1', '70000', '0', '300000', '5']);
    client.destroy();
  });

  it('do not begin while the client leaves answers unread', async (t) => {
    const server = await startTestServer(t, { unread: 1024 * 1024 }, (arrived) => void reply(arrived, MEBIBYTE));
    const client = deaf(t, server.url, pipelined(400));
    // The system's buffers take the first few; the next ones stay with the server.
    let known = -1;
    while (known !== server.arrived.length) {
      known = server.arrived.length;
      await setTimeout(200);
    }
    assert.ok(known < 60, `${known} of 400 began`);
    client.resume();
    await server.until(() => server.arrived.length === 400);
  });

  it('of one that pipelines thousands are all answered, and others meanwhile', async (t) => {
    const server = await startTestServer(t, {}, (arrived) => void reply(arrived, `<${arrived.request.url}>`));
    const greedy = openRaw(server.url);
    greedy.write(pipelined(20_000));
    await greedy.until((text) => text.includes('</0>'));
    const other = openRaw(server.url);
    other.write(GET);
    await other.until((text) => text.endsWith('</>'));
    assert.equal(greedy.text.includes('</19999>'), false);
    await greedy.until((text) => text.endsWith('</19999>'));
    greedy.destroy();
    other.destroy();
  });

  it('are closed with it, those that have not begun as well', async (t) => {
    const server = await startTestServer(t, { requests: 3, probe: 5 });
    const client = openRaw(server.url);
    client.write(pipelined(8));
    await server.until(() => server.arrived.length === 3);
    client.destroy();
    await server.until(() => server.closed.size === 3);
    assert.equal(server.arrived.length, 3);
    await server.until(() => server.connections.size === 0);
  });
});

describe('answers that nobody reads', () => {
  it('end with their connection when nothing of them was taken for a while', async (t) => {
    const server = await startTestServer(t, { stall: 200 }, (arrived) => void reply(arrived, MEBIBYTE));
    deaf(t, server.url, pipelined(100));
    await server.until(() => server.arrived.length > 0 && server.connections.size === 0);
  });

  it('take a bounded number of bytes in all: the slowest connection goes', async (t) => {
    const server = await startTestServer(t, { allUnread: 8 * 1024 * 1024 }, (arrived) => void reply(arrived, MEBIBYTE));
    for (let i = 0; i < 12; i++) deaf(t, server.url, pipelined(16));
    await server.until(() => server.arrived.length >= 12 && server.connections.size < 12);
    const reader = openRaw(server.url);
    reader.write(GET);
    await reader.until((text) => text.endsWith('xxx'));
    reader.destroy();
  });

  it('do not end one that waits for its answer', async (t) => {
    const server = await startTestServer(t, { stall: 100 });
    const client = deaf(t, server.url, pipelined(2));
    await server.until(() => server.arrived.length === 2);
    const [first, second] = server.arrived;
    assert.ok(first && second);
    reply(first, 'x'.repeat(16 * 1024 * 1024));
    client.resume();
    await server.until(() => server.closed.has(first.response));
    await setTimeout(300);
    assert.equal(second.response.destroyed, false);
    reply(second);
    await server.until(() => server.closed.has(second.response));
    assert.equal(second.response.writableFinished, true);
  });
});

describe('a server with more to do than it can', () => {
  it('says so with each request beyond its bound', async (t) => {
    const server = await startTestServer(t, { underWay: 2 });
    const clients = [1, 2, 3].map(() => openRaw(server.url));
    for (const [index, client] of clients.entries()) {
      client.write(GET);
      await server.until(() => server.arrived.length === index + 1);
    }
    assert.deepEqual(
      server.arrived.map(({ overloaded }) => overloaded),
      [false, false, true],
    );
    for (const client of clients) client.destroy();
  });

  it('says so when requests wait too long for their turn', async (t) => {
    const busy = () => {
      for (const end = performance.now() + 30; performance.now() < end; );
    };
    const server = await startTestServer(t, { begun: 2, delay: 100 }, (arrived) => {
      busy();
      reply(arrived);
    });
    const clients = Array.from({ length: 20 }, () => openRaw(server.url));
    await server.until(() => server.connections.size === 20);
    for (const client of clients) client.write(GET);
    await Promise.all(clients.map((client) => client.until((text) => text.endsWith('answer'))));
    assert.equal(server.arrived[0]?.overloaded, false);
    assert.ok(server.arrived.some(({ overloaded }) => overloaded));
    for (const client of clients) client.destroy();
  });

  it('closes who pipelines beyond all measure, and nobody else', async (t) => {
    const server = await startTestServer(t, { requests: 2, waiting: 50 });
    const modest = openRaw(server.url);
    modest.write(GET);
    await server.until(() => server.arrived.length === 1);
    const greedy = openRaw(server.url);
    greedy.write(pipelined(500));
    await greedy.closed;
    const [first] = server.arrived;
    assert.ok(first);
    reply(first);
    await modest.until((text) => text.endsWith('answer'));
    modest.destroy();
  });
});

describe('a client that ends its side', () => {
  it('still gets its answer', async (t) => {
    const server = await startTestServer(t, { probe: 10 });
    const client = connect({ port: Number(new URL(server.url).port), host: '127.0.0.1', allowHalfOpen: true });
    let text = '';
    client.setEncoding('latin1').on('data', (chunk) => {
      text += chunk;
    });
    const closed = new Promise((resolve) => client.on('close', resolve));
    client.end(GET);
    await server.until(() => server.arrived.length === 1);
    await setTimeout(100);
    const [one] = server.arrived;
    assert.ok(one);
    reply(one);
    await closed;
    assert.match(text, /^(?:HTTP\/1\.1 100 Continue\r\n\r\n)+HTTP\/1\.1 200 OK\r\n[\s\S]*answer$/);
  });

  it('is found to be gone where it is', async (t) => {
    const server = await startTestServer(t, { probe: 10 });
    const client = connect(Number(new URL(server.url).port), '127.0.0.1');
    client.write(GET);
    await server.until(() => server.arrived.length === 1);
    client.destroy();
    await server.until(() => server.closed.size === 1);
    assert.equal(server.arrived[0]?.response.writableFinished, false);
  });
});

describe('a wish for another protocol', () => {
  const upgrade = (line: string, more = '') =>
    `${line} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${more}\r\n`;

  it('is ignored, and what came behind it is answered', async (t) => {
    const server = await startTestServer(t, {}, (arrived) => void reply(arrived, `<${arrived.request.url}>`));
    const client = openRaw(server.url);
    client.write(`${upgrade('GET /upgrade')}GET /ready HTTP/1.1\r\nHost: a\r\n\r\n`);
    await client.until((text) => text.endsWith('</ready>'));
    assert.deepEqual(
      [...client.text.matchAll(/<[^>]*>/g)].map(([body]) => body),
      ['</upgrade>', '</ready>'],
    );
    client.destroy();
  });

  it('is ignored with a body, and behind other requests', async (t) => {
    const server = await startTestServer(t, {}, async (arrived) => {
      let body = '';
      for await (const chunk of arrived.request) body += chunk;
      await setTimeout(arrived.request.url === '/slow' ? 50 : 0);
      reply(arrived, `<${arrived.request.url} ${body}>`);
    });
    const client = openRaw(server.url);
    const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
    client.write(`${get('/slow')}${upgrade('POST /upgrade', 'Content-Length: 4\r\n')}body${get('/ready')}`);
    await client.until((text) => text.endsWith('</ready >'));
    assert.deepEqual(
      [...client.text.matchAll(/<[^>]*>/g)].map(([body]) => body),
      ['</slow >', '</upgrade body>', '</ready >'],
    );
    client.destroy();
  });

  it('ends the connection when it is made again and again', async (t) => {
    const server = await startTestServer(t, {}, (arrived) => void reply(arrived));
    const client = openRaw(server.url);
    client.write(upgrade('GET /').repeat(20));
    await client.closed;
    assert.ok(server.arrived.length < 20);
  });
});

describe('a request for several hosts', () => {
  for (const [first, second] of [
    ['Host: a', 'Host: b'],
    ['Host: a', 'HOST: a'],
  ]) {
    it(`is 400, and ends the connection: ${first}, ${second}`, async (t) => {
      const server = await startTestServer(t, {});
      const client = openRaw(server.url);
      client.write(`GET / HTTP/1.1\r\n${first}\r\n${second}\r\n\r\n`);
      assert.match(await client.closed, /^HTTP\/1\.1 400 Bad Request\r\nConnection: close\r\n/);
      assert.equal(server.arrived.length, 0);
    });
  }
});
