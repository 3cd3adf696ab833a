/** Stream mode answers with one event, signed as in sync mode. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AbiCoder } from 'ethers';
import { assertRefused, assertRouteHeaders } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded, verifyRaw } from '../support/verify.ts';

describe('stream mode', async () => {
  const upstream = await upstreamFor(suite, { '/encoded': faults.json({ price: '12.5', text: 'a' }) });
  // Line ends within the data would end the event.
  upstream.json('/raw', { text: 'one\ntwo\r\nthree\r\u2028data: {}\n\n', b: 1, a: [null] });
  upstream.on('/empty', faults.empty(204));
  upstream.on('/down', faults.serverError());
  const mode = 'stream';
  const encoding = { type: 'int256', path: '$.price', times: '1e2' };
  const endpoints = {
    encoded: { mode, encoding },
    raw: { mode, parameters: [{ name: 'q', required: true }] },
    empty: { mode },
    down: { mode },
    none: { mode, path: '/encoded?n', encoding: { type: 'int256', path: '$.none' } },
    keyed: { mode, path: '/encoded?k', auth: { type: 'apiKey', keys: ['k'] } },
  };
  const service = await serviceFor(suite, oneApi(upstream.url, endpoints));

  /** The one event of a response. */
  async function frame(response: Response): Promise<Record<string, unknown>> {
    const text = await response.text();
    assert.equal(response.status, 200, text);
    assert.equal(response.headers.get('content-type'), 'text/event-stream');
    assertRouteHeaders(response);
    const match = /^data: (\{[^\r\n]*\})\n\n$/.exec(text);
    assert.ok(match?.[1], text);
    return JSON.parse(match[1]);
  }

  it('one data frame, done, whose encoded fields verify', async () => {
    const { done, ...signed } = await frame(await service.post('api/encoded'));
    assert.equal(done, true);
    assert.deepEqual(Object.keys(signed).sort(), ['data', 'endpointId', 'node', 'signature', 'timestamp']);
    assert.equal(signed.endpointId, service.ids['api/encoded']);
    const { data } = await verifyEncoded(signed, service.signer.address);
    assert.deepEqual([...AbiCoder.defaultAbiCoder().decode(['int256'], data)], [1250n]);
  });

  it('one data frame, done, whose raw fields verify, whatever text they hold', async () => {
    const { done, ...signed } = await frame(await service.post('api/raw', { q: 1 }));
    assert.equal(done, true);
    assert.deepEqual(Object.keys(signed).sort(), ['endpointId', 'node', 'rawData', 'signature', 'timestamp']);
    const { rawData } = await verifyRaw(signed, service.signer.address);
    assert.deepEqual(rawData, { text: 'one\ntwo\r\nthree\r\u2028data: {}\n\n', b: 1, a: [null] });
  });

  it('an empty upstream body as null', async () => {
    const { done, ...signed } = await frame(await service.post('api/empty'));
    assert.deepEqual([done, (await verifyRaw(signed, service.signer.address)).rawData], [true, null]);
  });

  it('errors are plain HTTP, not frames', async () => {
    await assertRefused(await service.post('api/down'), 502, 'API call failed');
    await assertRefused(await service.post('api/none'), 502, 'No value found at path: $.none');
    await assertRefused(await service.post('api/raw'), 400, 'Missing required parameter(s): q');
    await assertRefused(await service.post('api/keyed'), 401, 'Missing X-Api-Key header');
  });
});
