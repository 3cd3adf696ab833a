/** Answers that nobody reads are bounded, and the slowest connection goes. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { openRaw } from '../support/raw-http.ts';
import { deaf, GET, gets, MEBIBYTE, pipelined, reply, startTestServer, type TestServer } from './server.ts';

/** More than the system's buffers take. */
const BIG = MEBIBYTE.repeat(16);
/** Milliseconds that a client of a busy machine has to take what it was sent. */
const STALL = 1500;
const UPGRADE = GET.replace('\r\n\r\n', '\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n');

/** A server that answers `/big` and `/deaf` at once, with more than the system's buffers take. */
function startAnsweringBig(t: TestContext, bounds: Parameters<typeof startTestServer>[1]): Promise<TestServer> {
  return startTestServer(t, bounds, (arrived) => {
    if (['/big', '/deaf'].includes(arrived.request.url ?? '')) reply(arrived, BIG);
  });
}

/** Resolves when a client that reads nothing has lost its connection: one that was timed before has lost it, too. */
async function untilOneStalls(t: TestContext, server: TestServer): Promise<void> {
  deaf(t, server.url, gets('/deaf'));
  const { response } = await server.at('/deaf');
  await server.until(() => server.closed.has(response));
}

describe('answers that nobody reads', () => {
  it('end with their connection when nothing of them was taken for a while', async (t) => {
    const server = await startTestServer(t, { stall: 200 }, (arrived) => void reply(arrived, MEBIBYTE));
    deaf(t, server.url, pipelined(100));
    await server.until(() => server.arrived.length > 0 && server.connections.size === 0);
  });

  it('do so with a wish for another protocol behind them', async (t) => {
    const server = await startAnsweringBig(t, { stall: 200 });
    deaf(t, server.url, gets('/big') + UPGRADE);
    await server.until(() => server.arrived.length === 1 && server.connections.size === 0);
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
});

describe('a client that takes what it is sent', () => {
  it('is not timed while its next answer is made', async (t) => {
    const server = await startAnsweringBig(t, { stall: STALL });
    const client = openRaw(server.url);
    client.write(gets('/big', '/slow'));
    const [big, slow] = [await server.at('/big'), await server.at('/slow')];
    await server.until(() => server.closed.has(big.response));
    await untilOneStalls(t, server);
    reply(slow, '<slow>');
    await client.until((text) => text.endsWith('<slow>'));
    client.destroy();
  });

  it('is not timed while its next request begins, which waited for the answer to be taken', async (t) => {
    const server = await startAnsweringBig(t, { stall: STALL, unread: 1 });
    const client = openRaw(server.url);
    client.write(gets('/big', '/slow'));
    await server.at('/big');
    assert.equal(server.arrived.length, 1);
    const slow = await server.at('/slow');
    await untilOneStalls(t, server);
    reply(slow, '<slow>');
    await client.until((text) => text.endsWith('<slow>'));
    client.destroy();
  });

  it('is not timed while an answer waits behind one that is being made', async (t) => {
    const server = await startAnsweringBig(t, { stall: STALL });
    const client = openRaw(server.url);
    client.write(gets('/slow', '/fast'));
    const [slow, fast] = [await server.at('/slow'), await server.at('/fast')];
    reply(fast, '<fast>');
    await untilOneStalls(t, server);
    reply(slow, '<slow>');
    await client.until((text) => text.endsWith('<fast>'));
    assert.match(client.text, /<slow>[^<]+<fast>$/);
    client.destroy();
  });

  it('is timed again once it leaves the answer unread that waited', async (t) => {
    const server = await startAnsweringBig(t, { stall: 200 });
    deaf(t, server.url, gets('/slow', '/big'));
    const [slow, big] = [await server.at('/slow'), await server.at('/big')];
    await untilOneStalls(t, server);
    assert.equal(server.closed.size, 1);
    reply(slow);
    await server.until(() => server.closed.has(big.response));
    assert.equal(server.connections.size, 0);
  });

  it('keeps its connection when the bytes of all are too many: one goes that does not read', async (t) => {
    const server = await startAnsweringBig(t, { allUnread: 20 * 1024 * 1024 });
    const client = openRaw(server.url);
    client.write(gets('/slow', '/fast'));
    const [slow, fast] = [await server.at('/slow'), await server.at('/fast')];
    reply(fast, `${MEBIBYTE.repeat(10)}<fast>`);
    deaf(t, server.url, gets('/deaf'));
    const { response } = await server.at('/deaf');
    await server.until(() => server.closed.has(response));
    reply(slow, '<slow>');
    await client.until((text) => text.endsWith('<fast>'));
    client.destroy();
  });

  it('keeps its connection when others come with many, though it is the slowest', async (t) => {
    const server = await startAnsweringBig(t, { allUnread: 40 * 1024 * 1024 });
    deaf(t, server.url, gets('/big'));
    const big = await server.at('/big');
    for (let i = 0; i < 3; i++) deaf(t, server.url, gets('/deaf'), '127.0.0.2');
    await server.until(() => server.closed.size > 0);
    assert.equal(server.closed.has(big.response), false);
  });

  it('loses its connection where all of them read, and the most waits on it', async (t) => {
    const server = await startTestServer(t, { allUnread: 1000 });
    const clients = ['/a', '/b', '/c'].map((path) => {
      const client = openRaw(server.url);
      client.write(gets(path, `${path}2`));
      return client;
    });
    for (const [path, length] of [
      ['/a2', 400],
      ['/b2', 500],
      ['/c2', 200],
    ] as const) {
      reply(await server.at(path), 'x'.repeat(length));
    }
    await clients[1]?.closed;
    for (const path of ['/a', '/c']) reply(await server.at(path));
    for (const [index, length] of [
      [0, 400],
      [2, 200],
    ] as const) {
      await clients[index]?.until((text) => text.endsWith('x'.repeat(length)));
      clients[index]?.destroy();
    }
  });
});
