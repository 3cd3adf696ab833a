/** Answers that clients do not take are bounded in time and in bytes. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { openRaw } from '../support/raw-http.ts';
import {
  BIG,
  deaf,
  GET,
  gets,
  MEBIBYTE,
  pipelined,
  reply,
  startTestServer,
  type TestServer,
  untilOneStalls,
} from './server.ts';

/** A server that answers `/deaf` at once, with more than the system's buffers take. */
function startAnsweringBig(t: TestContext, stall: number): Promise<TestServer> {
  return startTestServer(t, { stall }, (arrived) => {
    if (arrived.request.url === '/deaf') reply(arrived, BIG);
  });
}

describe('answers that their clients do not take', () => {
  it('end with their connection when nothing of them was taken for a while', async (t) => {
    const server = await startTestServer(t, { stall: 200 }, (arrived) => void reply(arrived, BIG));
    deaf(t, server.url, GET);
    await server.until(() => server.arrived.length > 0 && server.open.size === 0);
  });

  it('take a bounded number of bytes in all: the connection with the most goes', async (t) => {
    const server = await startTestServer(t, { unread: 8 * 1024 * 1024 }, (arrived) => void reply(arrived, MEBIBYTE));
    for (let i = 0; i < 6; i++) deaf(t, server.url, pipelined(16));
    await server.until(() => server.arrived.length >= 96 && server.open.size < 2);
    const reader = openRaw(server.url);
    reader.write(GET);
    await reader.until((text) => text.endsWith('xxx'));
    reader.destroy();
  });
});

describe('a client that takes what it is sent', () => {
  it('is not timed while its next answer is made', async (t) => {
    const server = await startAnsweringBig(t, 1000);
    const client = deaf(t, server.url, gets('/big', '/slow'));
    const [big, slow] = [await server.at('/big'), await server.at('/slow')];
    const { socket } = big.request;
    reply(big, BIG);
    // It is timed as long as it reads nothing.
    await server.until(() => socket.timeout === 1000);
    let end = '';
    client.on('data', (chunk) => (end = String(chunk).slice(-6))).resume();
    await server.until(() => server.closed.has(big.response));
    await untilOneStalls(t, server);
    reply(slow, '<slow>');
    await server.until(() => end === '<slow>');
  });

  it('is not timed while an answer waits behind one that is being made', async (t) => {
    const server = await startAnsweringBig(t, 1000);
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
});
