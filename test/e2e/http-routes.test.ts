/** Each route checks in order, and its responses carry the same headers. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertRefused, assertRouteHeaders, JSON_HEADERS, postText, REQUEST_ID } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { exchangeRaw, openRaw, parseResponse, requestHead } from '../support/raw-http.ts';
import { served } from '../support/served.ts';
import { encoding, TEST_ADDRESS } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

describe('routes', async () => {
  const endpoints = {
    sync: { encoding, mode: 'sync' },
    async: { encoding, mode: 'async' },
    stream: { encoding, mode: 'stream' },
  };
  const { service, post, at } = await served(suite, endpoints, { answers: { '*': faults.json({ price: 7 }) } });
  const id = service.ids['api/sync'] ?? '';

  /** The response to a request of which just the head is sent, with these headers. */
  const answerTo = async (line: string, headers: Record<string, string> = {}) =>
    parseResponse(await exchangeRaw(service.url, `${requestHead(line, headers)}\r\n`));
  /** Asserts how the response ends to a request whose body does not. */
  const assertEnd = async (end: string, line: string, headers: Record<string, string>, body = '') => {
    const connection = openRaw(service.url);
    connection.write(`${requestHead(line, headers)}\r\n${body}`);
    await connection.until((text) => text.endsWith(end));
    connection.destroy();
  };
  const chunked = { ...JSON_HEADERS, 'Transfer-Encoding': 'chunked' };

  describe('unknown path is 404 Not Found', () => {
    const paths = [
      ...['/', '/endpoints', '/endpoints/', '/endpoints/0x00/more', '/endpoint/0x00'],
      ...['/requests', '/requests/', '/requests/a/b', '/favicon.ico', '/__proto__', '/constructor'],
      ...['/health/', '/HEALTH', '/%68ealth', '//health', '/health%00', '/..%2fhealth', '/%zz', '/%', '/%ff%fe'],
    ];
    for (const path of paths) {
      it(`GET and POST ${path}`, async () => {
        await assertRefused(await fetch(service.url + path), 404, 'Not Found');
        await assertRefused(await postText(service.url + path, '{}'), 404, 'Not Found');
      });
    }

    it('a trailing slash after an endpoint ID is another path', async () => {
      await assertRefused(await postText(`${service.url}/endpoints/${id}/`, '{}'), 404, 'Not Found');
    });

    it('a request target that is no URL', async () => {
      const { status, headers, body } = await answerTo('GET http://[/health');
      assert.deepEqual([status, body], [404, '{"error":"Not Found"}']);
      assert.equal(headers['access-control-allow-origin'], '*');
    });

    it('GET * is a path, not a wildcard', async () => {
      const { status, body } = await answerTo('GET *');
      assert.deepEqual([status, body], [404, '{"error":"Not Found"}']);
    });

    it('an endless body gets its 404', () =>
      assertEnd('{"error":"Not Found"}', 'POST /nowhere', { 'Transfer-Encoding': 'chunked' }, '4\r\naaaa\r\n'));
  });

  describe('wrong method is 405 Method Not Allowed with Allow', () => {
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'PROPFIND']) {
      it(`${method} of an endpoint`, async () => {
        const response = await fetch(at('sync'), { method });
        await assertRefused(response, 405, 'Method Not Allowed');
        assert.equal(response.headers.get('allow'), 'POST');
      });
    }

    it('of an endpoint that does not exist: the method comes before the endpoint', async () => {
      const response = await fetch(`${service.url}/endpoints/nothing`);
      await assertRefused(response, 405, 'Method Not Allowed');
    });

    for (const path of ['/health', '/requests/0x00']) {
      it(`POST ${path}`, async () => {
        const response = await postText(service.url + path, '{}');
        await assertRefused(response, 405, 'Method Not Allowed');
        assert.deepEqual(response.headers.get('allow')?.split(', ').sort(), ['GET', 'HEAD']);
      });
    }

    it('HEAD of an endpoint: the same without the body', async () => {
      const response = await fetch(at('sync'), { method: 'HEAD' });
      assert.equal(response.status, 405);
      assert.equal(response.headers.get('allow'), 'POST');
      assert.equal(await response.text(), '');
      assertRouteHeaders(response);
    });

    it('TRACE does not reflect the request', async () => {
      const text = await exchangeRaw(service.url, `${requestHead('TRACE /health', { 'X-Api-Key': 'reflected' })}\r\n`);
      assert.equal(parseResponse(text).status, 405);
      assert.ok(!text.includes('reflected'));
    });
  });

  describe('endpoint 404 Endpoint not found', () => {
    const zeros = '0'.repeat(64);
    const ids = [
      ...[`0x${zeros}`, zeros, `0x${zeros.slice(1)}`, `0x${zeros}0`, `0x${'g'.repeat(64)}`, 'a'.repeat(8000)],
      ...['x', 'not-hex', '%zz', '%00', '%2F', '__proto__', 'constructor', '%F0%9F%92%A5'],
      // Those of an endpoint, but for one digit or the 0x.
      ...[id.slice(0, -1), `${id.slice(0, -1)}g`, `${id}0`, id.slice(2), `${id}%00`, `%20${id}`],
    ];
    for (const unknown of ids) {
      it(`id ${unknown.slice(0, 70)}`, async () => {
        await assertRefused(await postText(`${service.url}/endpoints/${unknown}`, '{}'), 404, 'Endpoint not found');
      });
    }

    it('hex is case-insensitive', async () => {
      const url = `${service.url}/endpoints/0x${id.slice(2).toUpperCase()}`;
      const { endpointId } = await verifyEncoded(await postText(url, '{}'), TEST_ADDRESS);
      assert.equal(endpointId, id);
    });

    it('the endpoint comes before content type, size and shape of the body', async () => {
      const url = `${service.url}/endpoints/0x${zeros}`;
      await assertRefused(await postText(url, 'x', { 'Content-Type': 'text/plain' }), 404, 'Endpoint not found');
      await assertRefused(await postText(url, 'x'.repeat(65_537)), 404, 'Endpoint not found');
      await assertRefused(await postText(url, '{'), 404, 'Endpoint not found');
    });

    const unread = {
      'an endless one': chunked,
      'one that never arrives': { ...JSON_HEADERS, 'Content-Length': '1000' },
    };
    for (const [what, headers] of Object.entries(unread))
      it(`the body is not read: ${what} gets its 404`, () => {
        const begun = headers === chunked ? '4\r\n{"a"\r\n' : '';
        return assertEnd('{"error":"Endpoint not found"}', `POST /endpoints/0x${zeros}`, headers, begun);
      });
  });

  describe('X-Request-Id', () => {
    it('is on every response of a route, in all modes, and never the same', async () => {
      const responses = [
        await post('sync'),
        await post('async'),
        await post('stream'),
        await fetch(`${service.url}/health`),
        await fetch(`${service.url}/health`, { method: 'HEAD' }),
        await fetch(`${service.url}/requests/unknown`),
        await fetch(`${service.url}/nowhere`),
        await fetch(`${service.url}/nowhere`, { method: 'OPTIONS' }),
        await postText(at('sync'), '{'),
      ];
      assert.deepEqual(
        responses.map(({ status }) => status),
        [200, 202, 200, 200, 200, 404, 404, 204, 400],
      );
      for (const response of responses) {
        assertRouteHeaders(response);
        await response.arrayBuffer();
      }
      assert.equal(new Set(responses.map(({ headers }) => headers.get('x-request-id'))).size, responses.length);
    });

    it('is the service’s own, whatever the client sends', async () => {
      const response = await post('sync', {}, { 'X-Request-Id': `0x${'1'.repeat(64)}` });
      assertRouteHeaders(response);
      assert.notEqual(response.headers.get('x-request-id'), `0x${'1'.repeat(64)}`);
    });
  });

  describe('unusual but sound requests', () => {
    it('a query string changes nothing', async () => {
      await verifyEncoded(await postText(`${at('sync')}?a=%zz&b`, '{}'), TEST_ADDRESS);
      assert.equal((await fetch(`${service.url}/health?x=1`)).status, 200);
    });

    it('a request target in absolute form (RFC 9112, section 3.2.2)', async () => {
      const { body } = await answerTo('GET http://other.example/health');
      assert.equal(body, `{"status":"ok","node":"${TEST_ADDRESS}"}`);
    });

    it('HTTP/1.0 without Host', async () => {
      assert.equal(parseResponse(await exchangeRaw(service.url, 'GET /health HTTP/1.0\r\n\r\n')).status, 200);
    });

    it('an expectation that nobody knows (RFC 9110, section 10.1.1)', async () => {
      const { status, headers } = await answerTo('GET /health', { Expect: 'miracles' });
      assert.equal(status, 200);
      assert.match(headers['x-request-id'] ?? '', REQUEST_ID);
    });

    it('an upgrade that nobody offers', async () => {
      const headers = { Connection: 'Upgrade, close', Upgrade: 'websocket' };
      assert.equal((await answerTo('GET /health', headers)).status, 200);
    });

    it('two requests in one packet are answered in order', async () => {
      const first = requestHead('GET /health', { Connection: 'keep-alive' });
      const text = await exchangeRaw(service.url, `${first}\r\n${requestHead('GET /nowhere')}\r\n`);
      assert.match(text, /^HTTP\/1\.1 200 OK\r\n[\s\S]*HTTP\/1\.1 404 Not Found\r\n[\s\S]*\{"error":"Not Found"\}$/);
    });

    it('an idle connection is kept for longer than proxies keep theirs', async () => {
      const first = requestHead('GET /health', { Connection: 'keep-alive' });
      const text = await exchangeRaw(service.url, `${first}\r\n${requestHead('GET /health')}\r\n`);
      assert.deepEqual(
        [...text.matchAll(/^(?:Connection|Keep-Alive): .*(?=\r$)/gm)].map(([line]) => line),
        ['Connection: keep-alive', 'Keep-Alive: timeout=75', 'Connection: close'],
      );
    });

    it('header names that objects have anyway', async () => {
      const headers = { ...JSON_HEADERS, __proto__x: 'a', constructor: 'b', toString: 'c', 'Content-Length': '0' };
      const head = `${requestHead(`POST /endpoints/${id}`, headers)}__proto__: polluted\r\n\r\n`;
      const { status, body } = parseResponse(await exchangeRaw(service.url, head));
      assert.equal(status, 200);
      await verifyEncoded(JSON.parse(body), TEST_ADDRESS);
    });
  });
});
