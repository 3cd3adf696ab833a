import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Wallet } from 'ethers';
import { assertRouteHeaders } from '../support/http.ts';
import { openRaw, requestHead } from '../support/raw-http.ts';
import { type RunningService, startTestService, TEST_ADDRESS, TEST_KEY } from '../support/service.ts';

describe('GET /health (specification: Endpoints; decisions: exactly status and node, no version, no rate limit)', () => {
  let service: RunningService;

  before(async () => {
    service = await startTestService({
      server: { rateLimit: { max: 1, window: 3_600_000 } },
      apis: [{ name: 'a', url: 'http://127.0.0.1:9', auth: { type: 'free' }, endpoints: [{ name: 'e', path: '/p' }] }],
    });
  });
  after(() => service.stop());

  it('is exactly {"status":"ok","node":"<address>"}', async () => {
    const response = await fetch(`${service.url}/health`);
    assert.equal(response.status, 200);
    assert.equal(await response.text(), `{"status":"ok","node":"${TEST_ADDRESS}"}`);
    assert.equal(response.headers.get('content-type'), 'application/json');
    assertRouteHeaders(response);
  });

  it('names the signer as ethers derives it', () => {
    assert.equal(new Wallet(TEST_KEY).address, TEST_ADDRESS);
  });

  it('HEAD has the headers of GET and no body', async () => {
    const connection = openRaw(service.url);
    connection.write(`${requestHead('HEAD /health')}\r\n`);
    const [head = '', body] = (await connection.closed).split('\r\n\r\n');
    assert.match(head, /^HTTP\/1\.1 200 OK\r\n/);
    assert.match(head, /\r\nContent-Type: application\/json\r\n/);
    assert.match(head, new RegExp(`\r\nContent-Length: ${`{"status":"ok","node":"${TEST_ADDRESS}"}`.length}\r\n`));
    assert.equal(body, '');
  });

  it('needs no credentials, ignores bodies and any headers', async () => {
    const headers = { 'X-Api-Key': 'wrong', 'X-Payment-Proof': 'wrong', Accept: 'text/html', 'If-None-Match': '*' };
    assert.equal((await fetch(`${service.url}/health?verbose=1`, { headers })).status, 200);
  });

  it('is spared by the rate limit', async () => {
    const statuses = await Promise.all(
      Array.from({ length: 20 }, async () => (await fetch(`${service.url}/health`)).status),
    );
    assert.deepEqual(new Set(statuses), new Set([200]));
  });
});
