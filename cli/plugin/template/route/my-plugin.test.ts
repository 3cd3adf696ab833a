import assert from 'node:assert/strict';
import { it } from 'node:test';
import { testPlugin } from 'signed-data-proxy/plugins-sdk/testing';
import plugin from './my-plugin.ts';

it('serves the endpoints of an API', async (t) => {
  const harness = await testPlugin(plugin, { t });
  const endpoints = [{ name: 'eth', path: '/eth' }];
  const service = await harness.serve({
    apis: [{ name: 'prices', url: 'https://api.example.com', auth: { type: 'free' }, endpoints }],
  });
  const { status, body } = await service.request({ path: '/my-plugin/prices' });
  assert.deepEqual([status, body], [200, service.endpoints.map(({ name, id }) => ({ name, id }))]);
  const unknown = await service.request({ path: '/my-plugin/weather' });
  assert.deepEqual([unknown.status, unknown.body], [404, { error: 'API not found' }]);
});
