/** A connection that is handed back is read again without a lost byte. */
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import type { ServerBounds } from '../../http/bounds.ts';
import { openRaw } from '../support/raw-http.ts';
import { GET, gets, pipelined, reply, startTestServer, type TestServer } from './server.ts';

/** Every kind of request, each with the answer to it: what the server has read of it. */
const REQUESTS: readonly (readonly [string, string])[] = [
  ['GET /plain HTTP/1.1\r\nHost: a\r\n\r\n', 'GET /plain 1.1 Host=a'],
  [
    'POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nGET /',
    'POST /length 1.1 Host=a,Content-Length=5 GET /',
  ],
  [
    'POST /chunks HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: B\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nB: c\r\n\r\n',
    'POST /chunks 1.1 Host=a,Transfer-Encoding=chunked,Trailer=B abcde B=c',
  ],
  [
    'PUT /expects HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}',
    'PUT /expects 1.1 Host=a,Expect=100-continue,Content-Length=2 {}',
  ],
  [
    'GET /upgrade HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    'GET /upgrade 1.1 Host=a,Connection=Upgrade',
  ],
  [
    'POST /both HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 3\r\n\r\nxyz',
    'POST /both 1.1 Host=a,Connection=upgrade,Content-Length=3 xyz',
  ],
  ['GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n', 'GET /old 1.0 Connection=keep-alive'],
  ['OPTIONS * HTTP/1.1\r\nHost: a\r\nX:\r\nY:  \xe9\t\r\nX: 2\r\n\r\n', 'OPTIONS * 1.1 Host=a,X=,Y=%C3%A9,X=2'],
  ['\r\nGET /last HTTP/1.1\r\nHost: a\r\n\r\n', 'GET /last 1.1 Host=a'],
];
const STREAM = REQUESTS.map(([bytes]) => bytes).join('');
const ANSWERS = REQUESTS.map(([, answer]) => answer);

/** How the stream may end: what comes behind it, or the end of the client, and what the server says to that. */
const ENDS: readonly (readonly [string, RegExp])[] = [
  ['', /^$/],
  ['GET /x HTTP/1.0\r\n\r\n', /^HTTP\/1\.1 200 OK\r\n[\s\S]*GET \/x 1\.0$/],
  ['CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\nbytes', /^HTTP\/1\.1 405 Method Not Allowed\r\n/],
];

function startEcho(t: TestContext, bounds: Partial<ServerBounds>): Promise<TestServer> {
  // No interim response to find out whether the client is there.
  return startTestServer(t, { probe: 1_000_000, ...bounds }, async (incoming) => {
    const { request } = incoming;
    const { method, url, httpVersion, rawHeaders } = request;
    let body = '';
    for await (const chunk of request) body += chunk;
    const pairs = (list: readonly string[]) =>
      list.flatMap((name, i) => (i % 2 ? [] : [`${name}=${encodeURI(list[i + 1] ?? '')}`])).join();
    reply(
      incoming,
      [method, url, httpVersion, pairs(rawHeaders), body, pairs(request.rawTrailers)].filter(Boolean).join(' '),
    );
  });
}

/** The answers to the stream in their order, and what comes behind them. */
function split(text: string): [string[], string] {
  const answers: string[] = [];
  let rest = text;
  while (answers.length < ANSWERS.length) {
    const [head, length] =
      /^(?:HTTP\/1\.1 100 Continue\r\n\r\n)?HTTP\/1\.1 200 OK\r\nContent-Length: (\d+)[\s\S]*?\r\n\r\n/.exec(rest) ??
      [];
    if (head === undefined) break;
    const end = head.length + Number(length);
    answers.push(rest.slice(head.length, end));
    rest = rest.slice(end);
  }
  return [answers, rest];
}

describe('a connection that node hands back and that is read again', () => {
  const modes: Readonly<Record<string, Partial<ServerBounds>>> = {
    'behind each request': { requests: 1 },
    'behind every three': { requests: 3 },
    'where the turn of the event loop is over': { begun: 2 },
  };
  for (const [number, [mode, bounds]] of Object.entries(modes).entries()) {
    it(`loses nothing and makes nothing up, wherever what it is sent comes in two pieces: ${mode}`, async (t) => {
      const server = await startEcho(t, bounds);
      const ask = async (cut: number) => {
        const [end, said] = ENDS[(cut + number) % ENDS.length] ?? ['', /^$/];
        const client = openRaw(server.url);
        await client.sent(STREAM.slice(0, cut));
        // What was sent first is read by itself, mostly.
        await setTimeout(20);
        await client.sent(STREAM.slice(cut) + end);
        if (end === '') client.end();
        const [answers, rest] = split(await client.closed);
        assert.deepEqual(answers, ANSWERS, `cut at byte ${cut}`);
        assert.match(rest, said, `cut at byte ${cut}`);
      };
      const cuts = Array.from({ length: STREAM.length + 1 }, (_, i) => i);
      while (cuts.length > 0) await Promise.all(cuts.splice(0, 64).map(ask));
    });
  }

  it('is kept alive, and timed like others', async (t) => {
    const server = await startEcho(t, { requests: 1 });
    server.server.headersTimeout = 500;
    const client = openRaw(server.url);
    client.write(STREAM);
    await client.until((text) => text.endsWith('GET /last 1.1 Host=a'));
    // No request has begun: it is none that is late.
    await setTimeout(2000);
    client.write(`${GET}${GET.slice(0, 5)}`);
    assert.match(await client.closed, /GET \/ 1\.1 Host=aHTTP\/1\.1 408 Request Timeout\r\nConnection: close\r\n\r\n$/);
  });

  it('is not timed as long as others are answered before it', async (t) => {
    const server = await startTestServer(t, { requests: 1 });
    server.server.headersTimeout = 500;
    const client = openRaw(server.url);
    client.write(gets('/slow', '/next'));
    await server.at('/slow');
    await setTimeout(2000);
    reply(await server.at('/slow'));
    reply(await server.at('/next'), '<next>');
    await client.until((text) => text.endsWith('<next>'));
    client.destroy();
  });

  it('takes no more from a client that sends without end', async (t) => {
    const server = await startTestServer(t, {});
    const client = openRaw(server.url);
    for (let i = 0; i < 16; i++) client.write(GET.repeat(100_000));
    await server.until(() => server.arrived.length === 16);
    const socket = server.arrived[0]?.request.socket;
    await setTimeout(200);
    assert.equal(server.arrived.length, 16);
    assert.ok(socket !== undefined && socket.bytesRead <= 192 * 1024, `${socket?.bytesRead} bytes`);
    client.destroy();
  });

  it('is not read again by a server that stops: what has begun is answered, and the last answer ends the connection', async (t) => {
    const server = await startTestServer(t, { requests: 2 });
    const client = openRaw(server.url);
    client.write(pipelined(5));
    await server.at('/1');
    server.connections.drain();
    for (let i = 0; i < 2; i++) {
      server.connections.closeIdle(0);
      const next = await server.at(`/${i}`);
      assert.equal(next.closes(false), i === 1);
      next.response.shouldKeepAlive = i === 0;
      reply(next, `<${i}>`);
    }
    assert.match(await client.closed, /<0>[\s\S]*Connection: close[\s\S]*<1>$/);
    assert.equal(server.arrived.length, 2);
  });
});

it('a connection that waits for answers is closed with all others', async (t) => {
  const server = await startTestServer(t, { requests: 1 });
  const client = openRaw(server.url);
  client.write(gets('/slow', '/next'));
  const slow = await server.at('/slow');
  server.connections.closeAll();
  assert.equal(await client.closed, '');
  await server.until(() => server.closed.has(slow.response));
  assert.equal(server.connections.size, 0);
});

describe('node', () => {
  it('stops within what it has read of a connection, and reads no other one any more in the same turn', async (t) => {
    const server = await startTestServer(t, { begun: 8 });
    const sockets: Socket[] = [];
    server.server.on('connection', (socket) => sockets.push(socket));
    const clients = Array.from({ length: 40 }, () => openRaw(server.url));
    await server.until(() => sockets.length === 40);
    const first = new Promise<number[]>((resolve) => {
      server.server.once('request', () => setImmediate(() => resolve(sockets.map(({ bytesRead }) => bytesRead))));
    });
    for (const client of clients) client.write(pipelined(30));
    const read = (await first).filter((bytes) => bytes > 0);
    assert.ok(read.length <= 1, `${read.length} connections were read, of which one would have been enough`);
    assert.equal(server.arrived.length, 8);
    for (const client of clients) client.destroy();
  });
});

describe('a request with more headers than node hands over', () => {
  const headers = (count: number) => Array.from({ length: count }, (_, i) => `H${i}: v\r\n`).join('');
  const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n';
  const post = (more: string, length = smuggled.length) =>
    `POST / HTTP/1.1\r\nHost: a\r\n${more}Content-Length: ${length}\r\n\r\n${smuggled}`;
  const BARE_431 = 'HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n';

  for (const upgrade of ['', 'Upgrade: websocket\r\n', 'Connection: Upgrade\r\nUpgrade: websocket\r\n'] as const) {
    it(`is a bare 431, and its body is no request: ${JSON.stringify(upgrade)}`, async (t) => {
      const server = await startEcho(t, {});
      for (const count of [999, 1100]) {
        const client = openRaw(server.url);
        client.write(post(upgrade + headers(count)));
        assert.equal(await client.closed, BARE_431);
      }
      assert.equal(server.arrived.length, 0);
    });
  }

  it('is none with a thousand', async (t) => {
    const server = await startEcho(t, {});
    const client = openRaw(server.url);
    client.write(post(`Upgrade: websocket\r\n${headers(997)}`));
    await client.until((text) => text.endsWith(smuggled));
    assert.equal(server.arrived.length, 1);
    client.destroy();
  });
});
