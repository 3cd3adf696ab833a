/** Sync mode answers with what was signed, in the response. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AbiCoder } from 'ethers';
import { assertRouteHeaders } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { served } from '../support/served.ts';
import { TEST_ADDRESS } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { verifyEncoded, verifyRaw } from '../support/verify.ts';

describe('sync mode', async () => {
  const encoding = { type: 'int256', path: '$.price' };
  const responseMatches = [{ type: 'regex', value: '"price":(?<price>[0-9.]+)' }];
  const endpoints = {
    ...{ encoded: { encoding, mode: 'sync' }, raw: {}, object: {}, empty: {} },
    matched: { encoding, responseMatches },
  };
  const { service, post, encoded, raw } = await served(suite, endpoints, {
    answers: {
      '*': faults.json({ price: 3.7 }),
      '/raw': faults.text('{"b": {"z": 1, "a": [true, null, "\\u00fc", 1e21]}, "a": -0.0}'),
      '/object': faults.json({}),
      '/empty': faults.empty(204),
    },
    // Nobody listens there: every proof fails.
    settings: { proof: { type: 'reclaim', gatewayUrl: 'http://127.0.0.1:1' } },
  });

  it('an encoded answer has just its members, and verifies', async () => {
    const before = Math.floor(Date.now() / 1000);
    const response = await post('encoded');
    assertRouteHeaders(response);
    assert.equal(response.headers.get('content-type'), 'application/json');
    const body = await verifyEncoded(response, TEST_ADDRESS);
    assert.deepEqual(Object.keys(body).sort(), ['data', 'endpointId', 'node', 'signature', 'timestamp']);
    assert.equal(body.endpointId, service.ids['api/encoded']);
    assert.ok(body.timestamp >= before && body.timestamp <= Math.floor(Date.now() / 1000));
    assert.deepEqual([...AbiCoder.defaultAbiCoder().decode(['int256'], body.data)], [3n]);
  });

  it('a raw answer has rawData in place of data, and verifies', async () => {
    const body = await verifyRaw(await post('raw'), TEST_ADDRESS);
    assert.deepEqual(Object.keys(body).sort(), ['endpointId', 'node', 'rawData', 'signature', 'timestamp']);
    assert.deepEqual(body.rawData, { a: 0, b: { a: [true, null, 'ü', 1e21], z: 1 } });
  });

  it('an empty object is signed as it is, an empty body as null', async () => {
    assert.deepEqual([await raw('object'), await raw('empty')], [{}, null]);
  });

  it('a failed proof is non-fatal: the answer comes without `proof`', async () => {
    assert.ok(!('proof' in (await encoded('matched'))));
  });
});
