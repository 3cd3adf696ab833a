import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { testPlugin, testUpstream } from 'signed-data-proxy/plugins-sdk/testing';
import plugin from './my-plugin.ts';

describe('my-plugin', () => {
  it('delivers the signed answer with the time beside it', async (t) => {
    const upstream = await testUpstream(t, ({ path }) => ({ status: path === '/eth' ? 200 : 404, data: { price: 1 } }));
    const harness = await testPlugin(plugin, { t });
    const endpoints = ['eth', 'none'].map((name) => ({ name, path: `/${name}`, mode: 'my-plugin' }));
    const service = await harness.serve({
      apis: [{ name: 'prices', url: upstream.url, auth: { type: 'free' }, endpoints }],
    });
    const answer = await service.ask<Record<string, unknown>>('prices/eth');
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.body.rawData, { price: 1 });
    assert.match(String(answer.body.servedAt), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const failed = await service.ask('prices/none');
    assert.deepEqual([failed.status, failed.body], [502, { error: 'API call failed' }]);
  });
});
