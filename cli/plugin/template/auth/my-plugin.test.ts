import assert from 'node:assert/strict';
import { it } from 'node:test';
import { testPlugin, testUpstream } from 'signed-data-proxy/plugins-sdk/testing';
import plugin from './my-plugin.ts';

it('lets in who sends one of the tokens', async (t) => {
  const upstream = await testUpstream(t, () => ({ data: { price: 1 } }));
  const harness = await testPlugin(plugin, { t });
  const auth = { type: 'my-plugin', tokens: ['0123456789abcdef', 'fedcba9876543210'] };
  const service = await harness.serve({
    apis: [{ name: 'prices', url: upstream.url, auth, endpoints: [{ name: 'eth', path: '/eth' }] }],
  });
  const ask = async (headers: Record<string, string>) => {
    const { status, body } = await service.ask<Record<string, unknown>>('prices/eth', {}, { headers });
    return [status, body.error];
  };
  assert.deepEqual(await ask({ 'X-Token': 'fedcba9876543210' }), [200, undefined]);
  assert.deepEqual(await ask({ 'X-Token': 'another-token-of-16' }), [401, 'Invalid token']);
  assert.deepEqual(await ask({}), [401, 'Missing header: X-Token']);
  assert.equal(upstream.requests.length, 1);
});

it('has the service refuse tokens that are too short', async () => {
  const harness = await testPlugin(plugin);
  const auth = { type: 'my-plugin', tokens: ['short'] };
  const endpoints = [{ name: 'eth', path: '/eth' }];
  const started = harness.serve({ apis: [{ name: 'prices', url: 'https://api.example.com', auth, endpoints }] });
  await assert.rejects(started, /apis\[0\]\.auth\.tokens\[0\]: /);
});
