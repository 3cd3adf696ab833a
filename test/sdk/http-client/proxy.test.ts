/** Requests go through a proxy, and its faults are named. */

import assert from 'node:assert/strict';
import { createServer } from 'node:https';
import type { Duplex } from 'node:stream';
import { after, before, describe, it, type TestContext } from 'node:test';
import { createHttpClient, type HttpClient } from '../../../lib/http/client/index.ts';
import { useProxyVariables } from '../../../lib/http/client/proxies.ts';
import { certificatesFor, withoutOpenssl } from '../../support/certificates.ts';
import { type HttpProxy, startHttpProxy } from '../../support/http-proxy.ts';
import { hostOf, textsOf } from '../../support/https.ts';
import { startUpstream, upstreamFor } from '../../support/upstream.ts';
import { eventually } from '../../support/wait.ts';
import { fails, MIB } from './setup.ts';

function clientWith(t: TestContext, variables: Readonly<Record<string, string>>): HttpClient {
  useProxyVariables(variables);
  const client = createHttpClient({ connections: 4 });
  t.after(() => {
    useProxyVariables(process.env);
    return client.close();
  });
  return client;
}

const get = (client: HttpClient, url: string, more = {}) =>
  client.request({ method: 'GET', url, timeout: 5000, maxBytes: MIB, ...more });

/** Checks the kind and the detail of the failure of a GET, by a proxy that these variables name. */
const failsBy = (
  t: TestContext,
  variables: Readonly<Record<string, string>>,
  url: string,
  kind: Parameters<typeof fails>[1],
  detail: string,
  more = {},
) => fails(get(clientWith(t, variables), url, more), kind, `GET ${new URL(url).origin} failed: ${detail}`);

const portOf = ({ url }: { readonly url: string }) => Number(new URL(url).port);

const credentials = `Basic ${btoa('user:secret')}`;
const withPassword = ({ url }: HttpProxy) => url.replace('//', '//user:secret@');

describe('a request of an http URL', () => {
  it('is sent on by the proxy, over connections that are kept', async (t) => {
    const upstream = await upstreamFor(t);
    upstream.json('/price', { price: 7 });
    const proxy = await startHttpProxy(t, portOf(upstream));
    const client = clientWith(t, { HTTP_PROXY: withPassword(proxy) });
    for (let i = 0; i < 3; i++) {
      const { status, body } = await get(client, 'http://api.test:81/price?q=1', { headers: { 'X-Key': 'k' } });
      assert.deepEqual([status, body.toString()], [200, '{"price":7}']);
    }
    assert.deepEqual(proxy.asked, Array(3).fill('GET http://api.test:81/price?q=1'));
    assert.deepEqual(proxy.credentials, Array(3).fill(credentials));
    assert.deepEqual(
      [proxy.headers[0]?.host, proxy.headers[0]?.['x-key'], proxy.sockets.size],
      ['api.test:81', 'k', 1],
    );
    assert.deepEqual(
      [upstream.requests[0]?.path, upstream.requests[0]?.headers['proxy-authorization']],
      ['/price?q=1', undefined],
    );
    const body = 'x'.repeat(1000);
    await client.request({ method: 'POST', url: 'http://api.test/price', body, timeout: 5000, maxBytes: MIB });
    assert.deepEqual([upstream.requests[3]?.body, upstream.requests[3]?.method], [body, 'POST']);
  });

  it('goes past the proxy where NO_PROXY says so, and by the variables that there were when its client was made', async (t) => {
    const upstream = await upstreamFor(t);
    upstream.text('/', 'direct');
    const proxy = await startHttpProxy(t, portOf(upstream));
    const url = upstream.url.replace('127.0.0.1', '0.0.0.0');
    const [direct, proxied] = [
      clientWith(t, { http_proxy: proxy.url, no_proxy: '0.0.0.0' }),
      clientWith(t, { http_proxy: proxy.url }),
    ];
    useProxyVariables({});
    assert.equal((await get(direct, `${url}/`)).body.toString(), 'direct');
    assert.deepEqual(proxy.asked, []);
    await get(proxied, `${url}/`);
    assert.deepEqual(proxy.asked, [`GET ${url}/`]);
  });

  it('fails with what the proxy says of its password, in time, and within the size', async (t) => {
    const upstream = await upstreamFor(t);
    upstream.text('/large', 'x'.repeat(100));
    const url = 'http://api.test/large';
    const refusing = await startHttpProxy(t, portOf(upstream), {
      onRequest: (response) => response.writeHead(407).end('no'),
    });
    const wanted = 'the proxy wants another user name and password (407)';
    await failsBy(t, { http_proxy: withPassword(refusing) }, url, 'network', wanted);
    const silent = await startHttpProxy(t, portOf(upstream), { onRequest: () => undefined });
    const late = 'no complete answer within 200 ms';
    await failsBy(t, { http_proxy: silent.url }, url, 'timeout', late, { timeout: 200 });
    const working = await startHttpProxy(t, portOf(upstream));
    const large = 'the answer is larger than 99 bytes';
    await failsBy(t, { http_proxy: working.url }, url, 'too-large', large, { maxBytes: 99 });
  });

  it('is no 407 of the proxy where there is none', async (t) => {
    const upstream = await upstreamFor(t);
    upstream.text('/', 'mine', { status: 407 });
    assert.equal((await get(clientWith(t, {}), `${upstream.url}/`)).status, 407);
  });
});

describe('a request of an https URL', { skip: withoutOpenssl }, () => {
  // Whom the client trusts is tried with the whole service; here it is what goes through a tunnel.
  before(() => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  });
  after(() => {
    delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  });

  async function secure(t: TestContext) {
    const { cert, key } = await textsOf(await certificatesFor(t, 'DNS:api.test'));
    const server = createServer({ cert, key }, (request, response) => {
      response.end(JSON.stringify([request.headers.host, request.headers['proxy-authorization'] ?? null, request.url]));
    });
    const url = `https://${await hostOf(t, server)}`;
    return { port: portOf({ url }), cert, key };
  }
  const BEHIND = 'https://api.test/';

  it('goes through a tunnel, which is kept; the server gets nothing that is for the proxy', async (t) => {
    const { port } = await secure(t);
    const proxy = await startHttpProxy(t, port);
    const client = clientWith(t, { HTTPS_PROXY: withPassword(proxy) });
    for (let i = 0; i < 3; i++) {
      const { body } = await get(client, 'https://api.test/price?q=1');
      assert.equal(body.toString(), '["api.test",null,"/price?q=1"]');
    }
    assert.deepEqual([proxy.asked, proxy.credentials], [['CONNECT api.test:443'], [credentials]]);
    assert.deepEqual(proxy.headers, [{ host: 'api.test:443' }]);
    await get(client, 'https://[2001:db8::1]:8443/');
    assert.equal(proxy.asked[1], 'CONNECT [2001:db8::1]:8443');
    await client.close();
    await eventually(() => proxy.sockets.size === 0);
  });

  it('goes through a tunnel of a proxy that speaks TLS, too', async (t) => {
    const { port, cert, key } = await secure(t);
    const proxy = await startHttpProxy(t, port, { tls: { cert, key } });
    const client = clientWith(t, { https_proxy: proxy.url });
    for (let i = 0; i < 2; i++) assert.equal((await get(client, BEHIND)).status, 200);
    assert.deepEqual(proxy.asked, ['CONNECT api.test:443']);
    await client.close();
    await eventually(() => proxy.sockets.size === 0);
  });

  it('opens no more connections than the client may', async (t) => {
    const { port } = await secure(t);
    const proxy = await startHttpProxy(t, port);
    const client = clientWith(t, { https_proxy: proxy.url });
    await Promise.all(Array.from({ length: 12 }, () => get(client, BEHIND)));
    assert.equal(proxy.asked.length, 4);
  });

  const answers: [string, (socket: Duplex) => void, string][] = [
    [
      'wants a password',
      (socket) => socket.end('HTTP/1.1 407 No\r\nContent-Length: 6\r\n\r\nsecret'),
      'the proxy wants another user name and password (407)',
    ],
    ['forbids it', (socket) => socket.end('HTTP/1.1 403 No\r\n\r\n'), 'the proxy refuses to connect: status 403'],
    [
      'answers a redirect',
      (socket) => socket.end('HTTP/1.1 302 x\r\nLocation: http://evil.test\r\n\r\n'),
      'the proxy refuses to connect: status 302',
    ],
    ['breaks off', (socket) => socket.destroy(), 'the proxy gave no answer: the connection was reset (ECONNRESET)'],
    [
      'speaks no HTTP',
      (socket) => socket.end('SSH-2.0\r\n\r\n'),
      'the proxy gave no answer: the connection failed (HPE_INVALID_CONSTANT)',
    ],
    [
      'never ends its headers',
      (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(100_000)}`),
      'the proxy gave no answer: the connection failed (HPE_HEADER_OVERFLOW)',
    ],
    [
      'speaks before the server',
      (socket) => socket.write('HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK'),
      'the proxy sent bytes that nobody had asked the server for',
    ],
  ];
  for (const [what, onConnect, detail] of answers)
    it(`fails where the proxy ${what}, once, and leaves no socket`, async (t) => {
      const proxy = await startHttpProxy(t, 1, { onConnect });
      await failsBy(t, { https_proxy: proxy.url }, BEHIND, 'network', detail);
      assert.equal(proxy.asked.length, 1);
      await eventually(() => proxy.sockets.size === 0);
    });

  it('fails in time where the proxy is silent, and leaves no socket', async (t) => {
    const silent = await startHttpProxy(t, 1, { onConnect: () => undefined });
    const detail = 'no connection within 200 ms';
    await failsBy(t, { https_proxy: silent.url }, BEHIND, 'timeout', detail, { timeout: 200 });
    await eventually(() => silent.sockets.size === 0);
  });

  it('fails where the proxy is down', async (t) => {
    const down = await startUpstream();
    await down.close();
    const detail = 'the proxy cannot be reached: the connection was refused (ECONNREFUSED)';
    for (const url of [BEHIND, 'http://api.test/'])
      await failsBy(t, { https_proxy: down.url, http_proxy: down.url }, url, 'network', detail);
  });

  it('fails where the server behind the proxy breaks off', async (t) => {
    const proxy = await startHttpProxy(t, 1, {
      onConnect: (socket) => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        socket.once('data', () => socket.destroy());
      },
    });
    await assert.rejects(
      get(clientWith(t, { https_proxy: proxy.url }), BEHIND),
      /^RequestFailure: GET https:\/\/api\.test failed: /,
    );
    await eventually(() => proxy.sockets.size === 0);
  });
});
