/** A server that stops tells its connections so, and waits for their requests. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { openRaw } from '../support/raw-http.ts';
import { deaf, GET, gets, MEBIBYTE, pipelined, reply, startTestServer } from './server.ts';

describe('a connection of a server that stops', () => {
  it('takes no request behind the one whose answer ends it', async (t) => {
    const server = await startTestServer(t, {});
    const client = openRaw(server.url);
    client.write(gets('/last'));
    const last = await server.at('/last');
    server.connections.drain();
    assert.equal(last.closes(false), true);
    const read = last.request.socket.bytesRead;
    client.write(gets('/late', '/later'));
    await server.until(() => last.request.socket.bytesRead > read);
    last.response.shouldKeepAlive = false;
    reply(last, '</last>');
    assert.match(
      await client.closed,
      /^HTTP\/1\.1 200 OK\r\nContent-Length: 7\r\n[\s\S]*Connection: close\r\n\r\n<\/last>$/,
    );
    assert.equal(server.arrived.length, 1);
  });

  it('answers what was read before the first answer, and takes no more: who pipelines on and on does not hold it up', async (t) => {
    const server = await startTestServer(t, {});
    const client = openRaw(server.url);
    client.write(pipelined(3));
    const [first, second, third] = [await server.at('/0'), await server.at('/1'), await server.at('/2')];
    server.connections.drain();
    assert.equal(second.closes(false), false);
    reply(second);
    const { socket } = first.request;
    const read = socket.bytesRead;
    client.write(gets('/late'));
    await server.until(() => socket.bytesRead > read);
    assert.equal(first.closes(false), false);
    reply(first);
    assert.equal(third.closes(false), true);
    third.response.shouldKeepAlive = false;
    reply(third);
    assert.equal((await client.closed).split('answer').length, 4);
    assert.equal(server.arrived.length, 3);
  });

  it('goes on where its last answer was written before, and could not say that it ends', async (t) => {
    const server = await startTestServer(t, {});
    const client = openRaw(server.url);
    client.write(pipelined(2));
    const [first, second] = [await server.at('/0'), await server.at('/1')];
    reply(second);
    server.connections.drain();
    assert.equal(first.closes(false), false);
    reply(first);
    client.write(gets('/2'));
    assert.equal((await server.at('/2')).closes(false), true);
    client.destroy();
  });

  it('is not reset while its client has yet to read the last answer', async (t) => {
    const server = await startTestServer(t, {});
    const client = deaf(t, server.url, GET);
    const errors: Error[] = [];
    client.on('error', (error) => errors.push(error));
    const closed = new Promise((resolve) => client.once('close', resolve));
    const last = await server.at('/');
    server.connections.drain();
    last.response.shouldKeepAlive = !last.closes(false);
    reply(last);
    await server.until(() => server.closed.has(last.response));
    await new Promise((resolve) => client.write(pipelined(100), resolve));
    await new Promise((resolve) => client.write(pipelined(100), resolve));
    let text = '';
    client.on('data', (chunk) => (text += chunk)).resume();
    await closed;
    assert.match(text, /answer$/);
    assert.deepEqual([errors, server.arrived.length], [[], 1]);
  });

  it('stays open where its client has yet to read the last answer, and may still send', async (t) => {
    const server = await startTestServer(t, {});
    const client = deaf(t, server.url, GET);
    const errors: Error[] = [];
    client.on('error', (error) => errors.push(error));
    const last = await server.at('/');
    server.connections.drain();
    last.response.shouldKeepAlive = !last.closes(false);
    reply(last);
    await server.until(() => server.closed.has(last.response));
    for (let looks = 0; looks < 3; looks++) {
      server.connections.closeIdle(0);
      await new Promise((resolve) => client.write(GET, resolve));
      await setTimeout(20);
    }
    let text = '';
    client.on('data', (chunk) => (text += chunk)).resume();
    await new Promise((resolve) => client.once('close', resolve));
    assert.match(text, /answer$/);
    assert.deepEqual([errors, server.arrived.length], [[], 1]);
  });

  it('reads on for a bounded number of bytes where requests had been handed back', async (t) => {
    const server = await startTestServer(t, { requests: 1, begun: 2 });
    const client = deaf(t, server.url, gets('/first', '/second', '/third'));
    const first = await server.at('/first');
    const { socket } = first.request;
    server.connections.drain();
    first.response.shouldKeepAlive = !first.closes(false);
    reply(first);
    await server.until(() => server.closed.has(first.response));
    const read = socket.bytesRead;
    client.write(MEBIBYTE.repeat(8));
    await server.until(() => socket.destroyed);
    const more = socket.bytesRead - read;
    assert.ok(more > 64 * 1024 && more <= 256 * 1024, `${more} bytes`);
    assert.equal(server.arrived.length, 1);
  });

  it('keeps its place with the last answers under way, though others send more than is read', async (t) => {
    const server = await startTestServer(t, { requests: 2, held: 1 });
    const client = openRaw(server.url);
    client.write(pipelined(3));
    const [first, last] = [await server.at('/0'), await server.at('/1')];
    server.connections.drain();
    assert.equal(first.closes(false), false);
    reply(first);
    const other = openRaw(server.url);
    other.write(gets('/a', '/b', '/c'));
    await server.at('/b');
    assert.equal(last.closes(false), true);
    last.response.shouldKeepAlive = false;
    reply(last, '<last>');
    assert.match(await client.closed, /<last>$/);
    other.destroy();
  });

  it('closes though its client goes on: with more than it reads, or with nothing', async (t) => {
    const server = await startTestServer(t, {});
    for (const bytes of [pipelined(20_000), '']) {
      const client = connect({ port: Number(new URL(server.url).port), host: '127.0.0.1', allowHalfOpen: true });
      client.on('error', () => undefined).resume();
      client.write(gets(`/last${bytes.length}`));
      const last = await server.at(`/last${bytes.length}`);
      server.connections.drain();
      last.response.shouldKeepAlive = !last.closes(false);
      reply(last);
      client.write(bytes);
      await server.until(() => server.connections.size === 0);
      client.destroy();
    }
    assert.equal(server.arrived.length, 2);
  });
});

describe('a connection that waits for nothing', () => {
  it('closes at once, or once its client has had time for its first byte', async (t) => {
    let now = 0;
    const server = await startTestServer(
      t,
      {},
      (arrived) => void reply(arrived),
      () => now,
    );
    const [kept, fresh] = [openRaw(server.url), openRaw(server.url)];
    kept.write(GET);
    await kept.until((text) => text.endsWith('answer'));
    await server.until(() => server.connections.size === 2);
    now = 999;
    for (let looks = 0; looks < 3; looks++) server.connections.closeIdle(1000);
    await kept.closed;
    assert.equal(server.connections.size, 1);
    now = 1000;
    server.connections.closeIdle(1000);
    assert.equal(await fresh.closed, '');
  });

  it('stays open where a request came while it was not read, and is not read yet in this turn', async (t) => {
    const server = await startTestServer(t, {}, (arrived) => void reply(arrived));
    const client = openRaw(server.url);
    client.write(GET);
    await client.until((text) => text.endsWith('answer'));
    server.connections.closeIdle(0);
    server.connections.hold(true);
    await client.sent(GET);
    await setTimeout(20);
    server.connections.hold(false);
    await setImmediate();
    server.connections.closeIdle(0);
    await client.until((text) => text.split('answer').length === 3);
    client.destroy();
  });

  it('stays open where a part of a request has come', async (t) => {
    const server = await startTestServer(t, {}, (arrived) => void reply(arrived));
    const client = openRaw(server.url);
    client.write(GET);
    await client.until((text) => text.endsWith('answer'));
    const { socket } = server.arrived[0]?.request ?? {};
    const read = socket?.bytesRead ?? 0;
    client.write(GET.slice(0, 7));
    await server.until(() => (socket?.bytesRead ?? 0) > read);
    for (let looks = 0; looks < 3; looks++) server.connections.closeIdle(0);
    client.write(GET.slice(7));
    await client.until((text) => text.endsWith('answer') && text.split('answer').length === 3);
    client.destroy();
  });
});
