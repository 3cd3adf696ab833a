/** A client that ends its side gets its answers. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { openRaw } from '../support/raw-http.ts';
import { GET, gets, pipelined, reply, startTestServer, type TestServer } from './server.ts';

const INTERIM = 'HTTP/1.1 100 Continue\r\n\r\n';

/** A client that ends its side behind its requests. */
function halfClosed(t: TestContext, { url }: TestServer, bytes: string) {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true });
  t.after(() => socket.destroy());
  const client = { text: '', closed: new Promise((resolve) => socket.on('close', resolve)) };
  socket.setEncoding('latin1').on('data', (chunk) => {
    client.text += chunk;
  });
  socket.end(bytes);
  return client;
}

/** Resolves when others were looked at so often, one after the other, that a fifth look at one before would have come. */
async function untilOthersHadThree(t: TestContext, server: TestServer): Promise<void> {
  for (let i = 0; i < 5; i++) {
    const other = halfClosed(t, server, gets(`/other${i}`));
    await server.until(() => other.text.startsWith(INTERIM.repeat(3)));
  }
}

describe('a client that ends its side', () => {
  it('still gets its answer, behind four interim responses at most', async (t) => {
    const server = await startTestServer(t, { probe: 1 });
    const client = halfClosed(t, server, GET);
    const one = await server.at('/');
    await server.until(() => client.text === INTERIM.repeat(4));
    await untilOthersHadThree(t, server);
    reply(one);
    await client.closed;
    assert.match(client.text, /^(?:HTTP\/1\.1 100 Continue\r\n\r\n){4}HTTP\/1\.1 200 OK\r\n[^<]*answer$/);
  });

  it('gets as many with each of its answers', async (t) => {
    const server = await startTestServer(t, { probe: 1 });
    const client = halfClosed(t, server, gets('/a', '/b'));
    const [a, b] = [await server.at('/a'), await server.at('/b')];
    const interims = () => client.text.split(INTERIM).length - 1;
    await server.until(() => interims() === 4);
    reply(a);
    await server.until(() => interims() === 8);
    reply(b);
    await client.closed;
    assert.match(client.text, /answer(?:HTTP\/1\.1 100 Continue\r\n\r\n){4}HTTP\/1\.1 200 OK\r\n[^<]*answer$/);
  });

  it('is found to be gone where it is', async (t) => {
    const server = await startTestServer(t, { probe: 10 });
    const client = connect(Number(new URL(server.url).port), '127.0.0.1');
    client.write(GET);
    await server.at('/');
    client.destroy();
    await server.until(() => server.closed.size === 1);
    assert.equal(server.connections.size, 0);
  });
});

describe('a client that is not read while its requests are answered', () => {
  it('gets four interim responses at most, and its answers', async (t) => {
    const server = await startTestServer(t, { requests: 2, probe: 0.1 });
    const client = openRaw(server.url);
    client.write(pipelined(3));
    const first = await server.at('/0');
    await client.until((text) => text === INTERIM.repeat(4));
    await untilOthersHadThree(t, server);
    assert.equal(client.text, INTERIM.repeat(4));
    reply(first, '<0>');
    for (const path of ['/1', '/2']) reply(await server.at(path), `<${path}>`);
    await client.until((text) => text.endsWith('</2>'));
    client.destroy();
  });
});
