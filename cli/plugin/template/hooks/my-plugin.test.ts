import assert from 'node:assert/strict';
import { it } from 'node:test';
import { testPlugin } from 'signed-data-proxy/plugins-sdk/testing';
import createPlugin from './my-plugin.ts';

it('rejects a client that does not send the header', async () => {
  const harness = await testPlugin(createPlugin({ requiredHeader: 'x-client' }));
  const rejection = { status: 400, message: 'Missing header: x-client' };
  assert.deepEqual(await harness.run('onHttpRequest'), { refused: rejection });
  assert.deepEqual(await harness.run('onHttpRequest', { headers: { 'X-Client': 'a' } }), { passed: true });
});

it('trims the parameters', async () => {
  const harness = await testPlugin(createPlugin({}));
  const outcome = await harness.run('onBeforeApiCall', { parameters: { symbol: ' ETH ', limit: 1 } });
  assert.deepEqual(outcome, { value: { symbol: 'ETH', limit: 1 } });
});

it('refuses an answer with a number below the minimum, and changes none', async () => {
  const harness = await testPlugin(createPlugin({ minimum: 1 }));
  assert.deepEqual(await harness.run('onAfterApiCall', { data: { price: 2064.1, names: [1] } }), { passed: true });
  const dropped = { status: 403, message: 'Request dropped by plugin "my-plugin"' };
  assert.deepEqual(await harness.run('onAfterApiCall', { data: { price: 2064.1, names: [0.96] } }), {
    refused: dropped,
  });
});

it('lets nothing be signed that is all zeros', async () => {
  const harness = await testPlugin(createPlugin({}));
  const dropped = { status: 403, message: 'Request dropped by plugin "my-plugin"' };
  assert.deepEqual(await harness.run('onBeforeSign', { data: '0x0000' }), { refused: dropped });
  assert.equal(harness.complaints[0]?.message, 'Error: there is nothing but zeros to sign');
  assert.deepEqual(await harness.run('onBeforeSign', { data: '0x0001' }), { passed: true });
});

it('reports slow answers and failures', async () => {
  const lines: string[] = [];
  const harness = await testPlugin(createPlugin({ slow: 100 }, (line) => lines.push(line)));
  const request = harness.request();
  await request.run('onResponseSent', { duration: 99 });
  await request.run('onResponseSent', { duration: 100 });
  await request.run('onError', { status: 404, message: 'Endpoint not found', stage: 'resolve' });
  await request.run('onError', { status: 502, message: 'API call failed', stage: 'callApi' });
  assert.deepEqual(lines, [
    `slow: test-api/test-endpoint took 100 ms, request ${request.requestId}`,
    `failed in callApi: 502 API call failed, request ${request.requestId}`,
  ]);
});
