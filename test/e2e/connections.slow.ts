/** Connections are limited and cut off in time, and a service with too much to do refuses some and answers others. */

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { assertRefused, JSON_HEADERS } from '../support/http.ts';
import { openRaw, type RawConnection, requestHead } from '../support/raw-http.ts';
import { served } from '../support/served.ts';
import type { RunningService } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

const encoding = { type: 'uint256', path: '$.price' };

function start(t: TestContext, server: object = {}, more: object = {}) {
  const answers = { '*': faults.json({ price: 7 }), '/hang': faults.hang() };
  return served(
    t,
    { price: { encoding }, hang: { encoding } },
    { answers, server, settings: { ccipRead: true }, ...more },
  );
}

/** The bytes of a request with a body, on a connection that stays. */
function keptRequest(url: string): string {
  const headers = { ...JSON_HEADERS, Connection: 'keep-alive', 'Content-Length': '2' };
  return `${requestHead(`POST ${new URL(url).pathname}`, headers)}\r\n{}`;
}

/** Which of so many connections, one after the other, are served. */
async function servedOf(t: TestContext, service: RunningService, address: string, count: number): Promise<boolean[]> {
  const outcomes: boolean[] = [];
  for (let i = 0; i < count; i++) outcomes.push(await silent(t, service, address).isServed());
  return outcomes;
}

/** A connection from a loopback address of its own, which sends nothing. */
function silent(t: TestContext, { url }: RunningService, localAddress: string) {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined);
  t.after(() => socket.destroy());
  const state = { open: true };
  socket.on('close', () => {
    state.open = false;
  });
  // What is refused is closed at once; what is not gets an answer.
  const isServed = async () => {
    let isAnswered = false;
    socket.once('data', () => (isAnswered = true));
    if (!state.open) return false;
    socket.write('GET /health HTTP/1.1\r\nHost: a\r\n\r\n');
    await eventually(() => isAnswered || !state.open, 'an answer or the end of the connection');
    return state.open;
  };
  return { socket, isServed };
}

describe('connections (server.connections)', () => {
  it('are limited by address and in all; those that are there stay', async (t) => {
    const { service } = await start(t, { connections: { max: 5, perAddress: 3 } });
    const taken = (address: string, count: number) => servedOf(t, service, address, count);
    const first = silent(t, service, '127.0.0.1');
    assert.equal(await first.isServed(), true);
    assert.deepEqual(await taken('127.0.0.1', 4), [true, true, false, false]);
    assert.deepEqual(await taken('127.0.0.2', 3), [true, true, false]);
    assert.deepEqual(await taken('127.0.0.3', 1), [false]);
    assert.equal(await first.isServed(), true);
    const refusals = service.logs.filter(({ message }) => message.startsWith('connections refused'));
    const refused = 'connections refused: server.connections';
    assert.deepEqual(refusals, [
      { level: 'warn', message: `${refused}.perAddress is reached`, fields: { limit: 3 } },
      { level: 'warn', message: `${refused}.max is reached`, fields: { limit: 5 } },
    ]);
    first.socket.destroy();
    await eventually(() => silent(t, service, '127.0.0.3').isServed());
  });

  it('of one address leave room for others, unless told otherwise', async (t) => {
    const { service } = await start(t, { connections: { max: 40 } });
    const silents = Array.from({ length: 150 }, () => silent(t, service, '127.0.0.1'));
    let open = 150;
    for (const { socket } of silents) socket.on('close', () => open--);
    await eventually(() => open <= 10, 'the refusals');
    assert.equal(open, 10);
    assert.equal(await silent(t, service, '127.0.0.2').isServed(), true);
  });

  const p = `export default { name: 'p', behindProxy: ({ server }) => server.connections.max === 12, setup: () => ({}) };`;
  const proxies: Readonly<Record<string, readonly [server: object, more: object]>> = {
    'are not counted by address behind a proxy, which has one': [
      { rateLimit: { max: 1000, trustForwardedFor: 1 } },
      {},
    ],
    'nor where a plugin knows of a proxy': [{}, { sources: { p } }],
  };
  for (const [what, [server, more]] of Object.entries(proxies))
    it(what, async (t) => {
      const { service } = await start(t, { connections: { max: 12 }, ...server }, more);
      assert.deepEqual(await servedOf(t, service, '127.0.0.1', 13), [...Array(12).fill(true), false]);
    });
});

describe('one connection', () => {
  it('has at most 16 requests under way: the 17th ends it', async (t) => {
    const { service, upstream, at, post } = await start(t);
    const client = openRaw(service.url);
    const request = keptRequest(at('hang'));
    client.write(request.repeat(16));
    await upstream.untilRequested('/hang', 16);
    assert.equal((await post('price')).status, 200);
    client.write(request);
    assert.equal(await client.closed, '');
    await upstream.untilAborted('/hang', 16);
    assert.equal(upstream.requests.filter(({ path: asked }) => asked === '/hang').length, 16);
  });

  it('ends after 5 seconds when a body that is refused has no end', async (t) => {
    const { service, at } = await start(t);
    const ended = async (line: string, status: number) => {
      const client = openRaw(service.url);
      const headers = { ...JSON_HEADERS, Connection: 'keep-alive', 'Transfer-Encoding': 'chunked' };
      client.write(`${requestHead(line, headers)}\r\n`);
      const sending = setInterval(() => client.write(`400\r\n${'x'.repeat(0x400)}\r\n`), 5);
      const text = await client.closed;
      clearInterval(sending);
      assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} `));
      assert.equal(text.split('HTTP/1.1 ').length, 2);
    };
    await Promise.all([
      ended('POST /nowhere', 404),
      ended(`POST /endpoints/0x${'00'.repeat(32)}`, 404),
      ended('POST /health', 405),
      ended('GET /health', 200),
      ended(`POST ${new URL(at('price')).pathname}`, 413),
    ]);
  });

  it('stays when the body is short enough to be read', async (t) => {
    const { service } = await start(t);
    const client = openRaw(service.url);
    const headers = { Connection: 'keep-alive', 'Content-Length': '60000' };
    client.write(`${requestHead('POST /nowhere', headers)}\r\n`);
    await client.until((text) => text.endsWith('{"error":"Not Found"}'));
    client.write(`${'x'.repeat(60_000)}${requestHead('GET /health')}\r\n`);
    assert.match(await client.closed, /HTTP\/1\.1 200 OK[\s\S]*"status":"ok"/);
  });
});

describe('a service with more to do than it can', () => {
  it('answers new connections while others have thousands of requests under way', async (t) => {
    const { service, at } = await start(t);
    const burst = keptRequest(at('price')).repeat(16);
    const clients = Array.from({ length: 100 }, () => openRaw(service.url));
    for (const client of clients) client.write(burst);
    await clients[0]?.until((text) => text.includes('HTTP/1.1'));
    assert.equal((await fetch(`${service.url}/health`)).status, 200);
    for (const client of clients) client.destroy();
  });

  it('refuses what it cannot take on, but not the look at its health', async (t) => {
    const { service, upstream, at, refused: refuses } = await start(t);
    const clients = Array.from({ length: 260 }, () => openRaw(service.url));
    for (const client of clients) client.write(keptRequest(at('hang')).repeat(16));
    await upstream.untilRequested('/hang', 50);
    const refused = await eventually(() => clients.find(({ text }) => text.includes('503')), 'a refusal');
    assert.match(refused.text, /^HTTP\/1\.1 503 Service Unavailable\r\n[\s\S]*\r\nRetry-After: 1\r\n/);
    assert.match(refused.text, /\r\n\r\n\{"error":"Server busy"\}/);
    await refuses(503, 'Server busy', 'price');
    await assertRefused(await fetch(`${service.url}/ccip`, { method: 'POST', body: '{}' }), 503, 'Server busy');
    for (const path of ['/health', '/ready']) assert.equal((await fetch(service.url + path)).status, 200);
    for (const client of clients) client.destroy();
  });
});

describe('deadlines of a request', { concurrency: true }, () => {
  const closedBefore = async (client: RawConnection, milliseconds: number): Promise<string> => {
    const late = new Promise<string>((resolve) => setTimeout(resolve, milliseconds, 'still open').unref());
    return Promise.race([client.closed, late]);
  };

  it('headers that do not come to their end: 10 seconds, and not 20', async (t) => {
    const { service } = await start(t);
    const client = openRaw(service.url);
    client.write('GET /health HTTP/1.1\r\nHost: a\r\n');
    assert.match(await closedBefore(client, 20_000), /^HTTP\/1\.1 408 Request Timeout\r\n/);
  });

  it('a connection that sends nothing: the same', async (t) => {
    const { service } = await start(t);
    assert.notEqual(await closedBefore(openRaw(service.url), 20_000), 'still open');
  });

  it('a body that does not come to its end: 30 seconds, and not 50', async (t) => {
    const { service, at } = await start(t);
    const client = openRaw(service.url);
    const path = new URL(at('price')).pathname;
    client.write(`${requestHead(`POST ${path}`, { ...JSON_HEADERS, 'Content-Length': '20' })}\r\n{"parameters"`);
    assert.notEqual(await closedBefore(client, 50_000), 'still open');
  });
});
