/** /health tells that the process lives, and /ready whether it takes requests. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Wallet } from 'ethers';
import { health } from '../../builtins/health/index.ts';
import { Exchange } from '../../kernel/exchange.ts';
import { randomId } from '../../lib/eth/hex.ts';
import { assertRouteHeaders } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { openRaw, parseResponse, requestHead } from '../support/raw-http.ts';
import { oneApi, serviceFor, startTestService, TEST_ADDRESS, TEST_KEY } from '../support/service.ts';
import { idleServices } from '../support/services.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

describe('GET /health', async () => {
  const service = await serviceFor(suite, oneApi('http://127.0.0.1:9', { e: {} }));

  it('is exactly {"status":"ok","node":"<address>"}', async () => {
    const response = await fetch(`${service.url}/health`);
    assert.equal(response.status, 200);
    assert.equal(await response.text(), `{"status":"ok","node":"${TEST_ADDRESS}"}`);
    assert.equal(response.headers.get('content-type'), 'application/json');
    assertRouteHeaders(response);
  });

  it('names the signer as ethers derives it', () => assert.equal(new Wallet(TEST_KEY).address, TEST_ADDRESS));

  it('HEAD has the headers of GET and no body', async () => {
    const connection = openRaw(service.url);
    connection.write(`${requestHead('HEAD /health')}\r\n`);
    const { status, headers, body } = parseResponse(await connection.closed);
    const length = `${`{"status":"ok","node":"${TEST_ADDRESS}"}`.length}`;
    assert.deepEqual([status, headers['content-type'], headers['content-length']], [200, 'application/json', length]);
    assert.equal(body, '');
  });

  it('needs no credentials, ignores bodies and any headers', async () => {
    const headers = { 'X-Api-Key': 'wrong', 'X-Payment-Proof': 'wrong', Accept: 'text/html', 'If-None-Match': '*' };
    assert.equal((await fetch(`${service.url}/health?verbose=1`, { headers })).status, 200);
  });
});

describe('GET /ready: whether the service takes requests', () => {
  const ready = '{"status":"ready"}';

  it('is 200 while it does', async (t) => {
    const service = await serviceFor(t, oneApi('http://127.0.0.1:9', { e: {} }));
    const response = await fetch(`${service.url}/ready`);
    assert.deepEqual([response.status, await response.text()], [200, ready]);
    assert.equal(response.headers.get('content-type'), 'application/json');
    assertRouteHeaders(response);
  });

  it('is spared by the rate limit', async (t) => {
    const server = { rateLimit: { max: 1, window: 3_600_000 } };
    const service = await serviceFor(t, oneApi('http://127.0.0.1:9', { e: {} }, { server }));
    for (let count = 0; count < 20; count++) assert.equal((await fetch(`${service.url}/ready`)).status, 200);
    assert.notEqual((await service.post('api/e')).status, 429, 'nothing was drawn from the bucket');
  });

  it('is 503 while it drains, and /health goes on as it was', async (t) => {
    const upstream = await upstreamFor(t, { '/held': faults.slow(300, faults.json({ price: 1 })) });
    const service = await startTestService(oneApi(upstream.url, { held: {} }));
    const held = service.post('api/held');
    await upstream.untilRequested('/held');
    const stopped = service.stop();
    const [ready, alive] = await Promise.all([fetch(`${service.url}/ready`), fetch(`${service.url}/health`)]);
    assert.deepEqual([ready.status, await ready.text()], [503, '{"status":"stopping"}']);
    assert.deepEqual([alive.status, ready.headers.get('connection')], [200, 'close']);
    assert.equal((await held).status, 200);
    await stopped;
    assert.ok(!service.logs.some(({ message }) => message.includes('cut off')));
  });

  it('is 503 while it starts, ready after that, and not again once it stops', async () => {
    const phases = ['starting', 'serving', 'stopping'] as const;
    let phase: (typeof phases)[number] = 'starting';
    const { routes = [] } = health.setup(idleServices({ phase: () => phase }), undefined);
    const route = routes.find(({ path }) => path === '/ready') ?? assert.fail();
    const asked = { method: 'GET', route: '/ready', headers: {}, socketAddress: '' };
    const exchange = new Exchange({ requestId: randomId(), ...asked });
    const request = { params: {}, query: new URLSearchParams(), body: new Uint8Array() };
    const answers = [];
    for (phase of phases) answers.push(await route.handle(request, exchange, exchange));
    assert.deepEqual(answers, [
      { status: 503, body: '{"status":"starting"}' },
      { status: 200, body: ready },
      { status: 503, body: '{"status":"stopping"}' },
    ]);
    assert.equal(route.admit, false);
  });
});
