/** Requests that do not come to their end are cut off in time. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { oneApi } from '../support/answers.ts';
import { endpointUrl, JSON_HEADERS } from '../support/http.ts';
import { openRaw, type RawConnection, requestHead } from '../support/raw-http.ts';
import { serviceFor } from '../support/service.ts';

async function start(t: TestContext) {
  return await serviceFor(t, oneApi('http://127.0.0.1:9', { price: {} }));
}

describe('deadlines of a request', { concurrency: true }, () => {
  const closedBefore = async (client: RawConnection, milliseconds: number): Promise<string> => {
    const late = new Promise<string>((resolve) => setTimeout(resolve, milliseconds, 'still open').unref());
    return Promise.race([client.closed, late]);
  };

  it('headers that do not come to their end: 10 seconds, and not 20', async (t) => {
    const service = await start(t);
    const client = openRaw(service.url);
    client.write('GET /health HTTP/1.1\r\nHost: a\r\n');
    assert.match(await closedBefore(client, 20_000), /^HTTP\/1\.1 408 Request Timeout\r\n/);
  });

  it('a connection that sends nothing: the same', async (t) => {
    const service = await start(t);
    assert.notEqual(await closedBefore(openRaw(service.url), 20_000), 'still open');
  });

  it('a body that does not come to its end: 30 seconds, and not 50', async (t) => {
    const service = await start(t);
    const client = openRaw(service.url);
    const path = new URL(endpointUrl(service, 'api/price')).pathname;
    client.write(`${requestHead(`POST ${path}`, { ...JSON_HEADERS, 'Content-Length': '20' })}\r\n{"parameters"`);
    assert.notEqual(await closedBefore(client, 50_000), 'still open');
  });
});
