/** A stream goes out as it is read, and ends with its client. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { pour, send } from '../../http/send.ts';

import { openRaw } from '../support/raw-http.ts';
import { type Arrived, BIG, deaf, gets, reply, startTestServer, untilOneStalls } from './server.ts';

/** A server that streams at `/stream` what the test pushes, and answers `/deaf` with more than the system's buffers take. */
async function startStreaming(t: TestContext, bounds: Parameters<typeof startTestServer>[1]) {
  /** For each chunk that was asked for, what of those before it the system had not taken. */
  const waiting: number[] = [];
  let returns = 0;
  let give: (chunk: string) => void = () => undefined;
  const stream = ({ response }: Arrived) => {
    const next = () =>
      new Promise<IteratorResult<string>>((resolve) => {
        waiting.push(response.writableLength);
        give = (value) => resolve({ done: false, value });
      });
    const end = async () => {
      returns += 1;
      return { done: true as const, value: undefined };
    };
    const body = { [Symbol.asyncIterator]: () => ({ next, return: end }) };
    send(response, { status: 200, headers: {}, body }, {});
    response.once(
      'close',
      pour(body, response, (error) => assert.fail(String(error))),
    );
  };
  const server = await startTestServer(t, bounds, (incoming) => {
    if (incoming.request.url === '/stream') stream(incoming);
    if (incoming.request.url === '/deaf') reply(incoming, BIG);
  });
  /** Gives a chunk once it is asked for. */
  const push = async (chunk: string, count: number) => {
    await server.until(() => waiting.length === count);
    give(chunk);
  };
  return { ...server, waiting, push, returns: () => returns };
}

describe('a stream', () => {
  it('is not read ahead of its client', async (t) => {
    const server = await startStreaming(t, {});
    const client = deaf(t, server.url, gets('/stream'));
    let read = 0;
    client.on('data', (chunk) => (read += chunk.length)).pause();
    await server.push(BIG, 1);
    const { response } = await server.at('/stream');
    await server.until(() => response.writableLength > 0);
    client.resume();
    await server.push('last', 2);
    await server.until(() => server.waiting.length === 3 && read > BIG.length);
    assert.deepEqual(server.waiting, [0, 0, 0]);
  });

  it('whose client takes what comes is not timed between its chunks', async (t) => {
    const server = await startStreaming(t, { stall: 200 });
    const client = openRaw(server.url);
    client.write(gets('/stream'));
    await server.push('<one>', 1);
    await client.until((text) => text.includes('<one>'));
    await untilOneStalls(t, server);
    await server.push('<two>', 2);
    await client.until((text) => text.includes('<two>'));
    assert.equal(server.returns(), 0);
    client.destroy();
    await server.until(() => server.returns() === 1);
  });

  it('ends with its connection when nothing of a chunk was taken for a while', async (t) => {
    const server = await startStreaming(t, { stall: 200 });
    deaf(t, server.url, gets('/stream'));
    await server.push(BIG, 1);
    await server.until(() => server.open.size === 0);
    assert.equal(server.returns(), 1);
    assert.deepEqual(server.waiting, [0]);
  });

  it('keeps its connection when the bytes of all are too many: one goes that does not read', async (t) => {
    const server = await startStreaming(t, { unread: 20 * 1024 * 1024 });
    const client = openRaw(server.url);
    client.write(gets('/stream'));
    await server.push(BIG, 1);
    await client.until((text) => text.length > BIG.length);
    for (const path of ['/deaf', '/deaf']) deaf(t, server.url, gets(path), '127.0.0.2');
    await server.until(() => server.closed.size > 0);
    await server.push('<last>', 2);
    await client.until((text) => text.includes('<last>'));
    client.destroy();
  });

  it('that waits behind another answer is made chunk by chunk, too', async (t) => {
    const server = await startStreaming(t, { stall: 200 });
    const client = openRaw(server.url);
    client.write(gets('/slow', '/stream'));
    await server.push('<one>', 1);
    await untilOneStalls(t, server);
    assert.equal(server.waiting.length, 1);
    reply(await server.at('/slow'), '<slow>');
    await client.until((text) => /<slow>[\s\S]*<one>/.test(text));
    await server.push('<two>', 2);
    await client.until((text) => text.includes('<two>'));
    client.destroy();
  });
});
