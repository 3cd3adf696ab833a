/** Requests of a connection are handled one by one. */
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { describe, it, type TestContext } from 'node:test';
import { serializeConnection } from '../../lib/bounded/serialize-connection.ts';
import { listen, urlOf } from '../../lib/http/listen.ts';
import { openRaw } from '../support/raw-http.ts';

async function start(t: TestContext, handle: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(serializeConnection(handle));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await listen(server, { host: '127.0.0.1', port: 0 });
  return urlOf(server);
}

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

describe('the requests of a connection, one by one', () => {
  it('are answered in their order, never two of them at a time, and those of others meanwhile', async (t) => {
    const underWay: ServerResponse[] = [];
    const url = await start(t, (_, response) => void underWay.push(response));
    const [one, two] = [openRaw(url), openRaw(url)];
    one.write(GET.repeat(5));
    two.write(GET);
    let answered = 0;
    while (answered < 6) {
      while (underWay.length === 0) await new Promise((resolve) => setImmediate(resolve));
      assert.ok(underWay.length <= 2);
      for (const response of underWay.splice(0)) response.end(`<${answered++}>`);
    }
    await one.until((text) => text.split('<').length === 6);
    await two.until((text) => text.split('<').length === 2);
    const digits = [...one.text.matchAll(/<(\d)>/g)].map(([, digit]) => Number(digit));
    assert.deepEqual(digits, digits.toSorted());
    for (const client of [one, two]) client.destroy();
  });

  it('are answered with their bodies, read or not', async (t) => {
    const url = await start(t, async (request, response) => {
      let length = 0;
      if (request.url === '/read') for await (const chunk of request) length += chunk.length;
      response.end(`<${length}>`);
    });
    const client = openRaw(url);
    const post = (path: string, length: number) =>
      `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n${'x'.repeat(length)}`;
    client.write(post('/read', 200_000) + post('/', 100_000) + post('/read', 3));
    await client.until((text) => text.includes('<3>'));
    assert.deepEqual(client.text.match(/<\d+>/g), ['<200000>', '<0>', '<3>']);
    client.destroy();
  });

  it('that wait are forgotten with it', async (t) => {
    let handled = 0;
    const url = await start(t, ({ socket }) => {
      handled += 1;
      socket.destroy();
    });
    const client = openRaw(url);
    client.write(GET.repeat(5));
    await client.closed;
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    assert.equal(handled, 1);
  });
});
