/** A wish for another protocol loses no answer. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { openRaw } from '../support/raw-http.ts';
import { gets, reply, startTestServer } from './server.ts';

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
      if (arrived.request.url !== '/slow') reply(arrived, `<${arrived.request.url} ${body}>`);
    });
    const client = openRaw(server.url);
    client.write(`${gets('/slow')}${upgrade('POST /upgrade', 'Content-Length: 4\r\n')}body${gets('/ready')}`);
    reply(await server.at('/slow'), '</slow >');
    await client.until((text) => text.endsWith('</ready >'));
    assert.deepEqual(
      [...client.text.matchAll(/<[^>]*>/g)].map(([body]) => body),
      ['</slow >', '</upgrade body>', '</ready >'],
    );
    client.destroy();
  });

  it('is ignored behind other requests of a client that has ended its side', async (t) => {
    const server = await startTestServer(t, {}, (arrived) => {
      if (arrived.request.url !== '/slow') reply(arrived, `<${arrived.request.url}>`);
    });
    const client = openRaw(server.url);
    client.write(`${gets('/slow')}${upgrade('GET /upgrade')}${gets('/ready')}`);
    client.end();
    reply(await server.at('/slow'), '</slow>');
    const text = await client.closed;
    assert.deepEqual(
      [...text.matchAll(/<[^>]*>/g)].map(([body]) => body),
      ['</slow>', '</upgrade>', '</ready>'],
    );
  });

  it('is ignored as often as it is made, and leaves nothing behind', async (t) => {
    const listeners = new Set<number>();
    const server = await startTestServer(t, {}, (arrived) => {
      const { socket } = arrived.request;
      listeners.add(socket.eventNames().reduce((sum, name) => sum + socket.listenerCount(name), 0));
      reply(arrived, `<${arrived.request.url}>`);
    });
    const client = openRaw(server.url);
    for (let i = 0; i < 30; i++) {
      client.write(upgrade(`GET /${i}`));
      await client.until((text) => text.endsWith(`</${i}>`));
    }
    assert.equal(listeners.size, 1);
    client.destroy();
  });

  it('is ignored each time where many come at once', async (t) => {
    const server = await startTestServer(t, {}, (arrived) => void reply(arrived));
    const client = openRaw(server.url);
    client.write(`${upgrade('GET /').repeat(200)}${gets('/last')}`);
    await server.at('/last');
    await client.until((text) => text.split('HTTP/1.1 200 OK').length === 202);
    client.destroy();
  });

  it('that waited for an answer does not have its own timed', async (t) => {
    const server = await startTestServer(t, {});
    const client = openRaw(server.url);
    client.write(`${gets('/slow')}${upgrade('GET /upgrade')}`);
    reply(await server.at('/slow'));
    const { request } = await server.at('/upgrade');
    assert.equal(request.socket.timeout, 0);
    client.destroy();
  });

  it('that waits for its turn is not asked by a server that stops', async (t) => {
    const server = await startTestServer(t, {});
    const client = openRaw(server.url);
    client.write(`${gets('/slow')}${upgrade('GET /upgrade')}`);
    const slow = await server.at('/slow');
    server.connections.drain();
    assert.equal(slow.closes(false), true);
    slow.response.shouldKeepAlive = false;
    reply(slow, '</slow>');
    assert.match(await client.closed, /Connection: close[\s\S]*<\/slow>$/);
    assert.equal(server.arrived.length, 1);
  });

  it('that waits for its turn can be reset by its client', async (t) => {
    const server = await startTestServer(t, {});
    const client = connect(Number(new URL(server.url).port), '127.0.0.1');
    client.write(`${gets('/slow')}${upgrade('GET /upgrade')}`);
    const { response } = await server.at('/slow');
    client.resetAndDestroy();
    await server.until(() => server.closed.has(response));
    assert.equal(server.connections.size, 0);
  });
});

it('CONNECT is refused, behind the answers to what came before', async (t) => {
  const server = await startTestServer(t, {});
  const client = openRaw(server.url);
  client.write(`${gets('/slow')}CONNECT other:443 HTTP/1.1\r\nHost: other:443\r\n\r\nbytes`);
  reply(await server.at('/slow'), '</slow>');
  const text = await client.closed;
  assert.match(
    text,
    /^HTTP\/1\.1 200 [\s\S]*<\/slow>HTTP\/1\.1 405 Method Not Allowed\r\n[\s\S]*\r\n\r\n\{"error":"Method Not Allowed"\}$/,
  );
});
