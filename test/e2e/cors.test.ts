/** Browsers may ask from the origins that are allowed, by documented headers. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { endpointUrl, JSON_HEADERS, postText, REQUEST_ID } from '../support/http.ts';
import { type Lifetime, suite } from '../support/lifetime.ts';
import { exchangeRaw, openRaw, parseResponse, requestHead } from '../support/raw-http.ts';
import { oneApi, type RunningService, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const APP = 'https://app.example.com';

describe('CORS', async () => {
  const upstream = await upstreamFor(suite, { '*': faults.json(1) });
  const start = (server: object, plugins: object[] = [], lifetime: Lifetime = suite) =>
    serviceFor(
      lifetime,
      oneApi(upstream.url, { sync: {}, stream: { mode: 'stream' } }, { server, settings: { plugins } }),
    );
  const open = await start({});
  const listed = await start({ cors: { origins: [APP, 'http://localhost:5173'] } });

  /** Responses of every kind to a client of this origin. */
  const responses = async (service: RunningService, origin?: string) => {
    const headers: Record<string, string> = origin === undefined ? {} : { Origin: origin };
    const url = endpointUrl(service, 'api/sync');
    return [
      await postText(url, '{}', { ...JSON_HEADERS, ...headers }),
      await postText(endpointUrl(service, 'api/stream'), '{}', { ...JSON_HEADERS, ...headers }),
      await postText(url, '{', { ...JSON_HEADERS, ...headers }),
      await postText(url, '{}', { 'Content-Type': 'text/plain', ...headers }),
      await fetch(url, { headers }),
      await fetch(`${service.url}/endpoints/0x00`, { method: 'POST', headers }),
      await fetch(`${service.url}/nowhere`, { headers }),
      await fetch(`${service.url}/requests/x`, { headers }),
      await fetch(`${service.url}/health`, { headers }),
      await fetch(url, { method: 'OPTIONS', headers }),
    ];
  };

  const allowed = async (service: RunningService, origin: string | undefined, value: string, vary: string | null) => {
    for (const response of await responses(service, origin)) {
      assert.equal(response.headers.get('access-control-allow-origin'), value, `${response.status}`);
      assert.equal(response.headers.get('vary'), vary, `${response.status}`);
      assert.equal(response.headers.get('access-control-allow-credentials'), null);
    }
  };

  it('without a cors block every origin is allowed', async () => {
    await allowed(open, APP, '*', null);
    await allowed(open, undefined, '*', null);
  });

  it('a matching origin is echoed with Vary: Origin', async () => {
    await allowed(listed, APP, APP, 'Origin');
    await allowed(listed, 'http://localhost:5173', 'http://localhost:5173', 'Origin');
  });

  for (const origin of [
    ...['https://evil.example.com', 'http://app.example.com', 'https://app.example.com:8443', `${APP}, ${APP}`],
    ...['https://app.example.com.evil.com', 'https://app.example.com/', 'https://APP.example.com'],
    ...['*', '__proto__', ''],
  ]) {
    it(`a non-matching origin receives null: ${origin || '(empty)'}`, () => allowed(listed, origin, 'null', 'Origin'));
  }

  it('the origin null receives no such header: its value would let sandboxed pages and files in', async (t) => {
    for (const response of await responses(listed, 'null')) {
      assert.equal(response.headers.get('access-control-allow-origin'), null);
      assert.equal(response.headers.get('vary'), 'Origin');
    }
    const named = await start({ cors: { origins: ['null'] } }, [], t);
    await allowed(named, 'null', 'null', 'Origin');
  });

  it('no origin at all: null, and caches are told', () => allowed(listed, undefined, 'null', 'Origin'));

  it('an empty list allows nobody', async (t) =>
    allowed(await start({ cors: { origins: [] } }, [], t), APP, 'null', 'Origin'));

  it('* in the list allows every origin', async (t) =>
    allowed(await start({ cors: { origins: ['*'] } }, [], t), APP, '*', null));

  describe('preflight', () => {
    const preflight = {
      'access-control-allow-methods': 'GET, POST, OPTIONS',
      'access-control-allow-headers': 'Content-Type, X-Api-Key, X-Payment-Proof',
      'access-control-max-age': '86400',
      'access-control-expose-headers': 'Cache-Status, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id',
    };
    const asked = {
      Origin: APP,
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': 'content-type,x-api-key',
    };

    const check = async (service: RunningService, path: string, headers: Record<string, string>, cors: object) => {
      const text = await exchangeRaw(service.url, `${requestHead(`OPTIONS ${path}`, headers)}\r\n`);
      const { status, headers: received, body } = parseResponse(text);
      const { 'x-request-id': id = '', date, ...rest } = received;
      assert.deepEqual([status, body], [204, '']);
      assert.match(id, REQUEST_ID);
      assert.ok(date);
      assert.deepEqual(rest, { ...preflight, ...cors, connection: 'close' });
    };

    for (const path of ['/endpoints/0x00', '/endpoints/', '/requests/x', '/health', '/nowhere', '/', '/%zz', '*']) {
      it(`of any path: ${path}`, async () => {
        await check(open, path, asked, { 'access-control-allow-origin': '*' });
        await check(listed, path, asked, { 'access-control-allow-origin': APP, vary: 'Origin' });
        const evil = { ...asked, Origin: 'https://evil.example.com' };
        await check(listed, path, evil, { 'access-control-allow-origin': 'null', vary: 'Origin' });
      });
    }

    it('without the headers of one', () => check(open, '/endpoints/0x00', {}, { 'access-control-allow-origin': '*' }));

    it('names the headers of the auth methods of the service only', async (t) => {
      const service = await start({}, [{ source: 'builtin:auth-x402', enabled: false }], t);
      const response = await fetch(service.url, { method: 'OPTIONS' });
      assert.equal(response.headers.get('access-control-allow-headers'), 'Content-Type, X-Api-Key');
    });

    it('does not wait for a body', async () => {
      const connection = openRaw(open.url);
      const headers = { 'Transfer-Encoding': 'chunked', 'Content-Type': 'text/plain' };
      connection.write(`${requestHead('OPTIONS /', headers)}\r\n1\r\na\r\n`);
      await connection.until((text) => text.startsWith('HTTP/1.1 204 No Content\r\n') && text.endsWith('\r\n\r\n'));
      connection.destroy();
    });
  });
});
