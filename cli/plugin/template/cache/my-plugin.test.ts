import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { testPlugin, testUpstream } from 'signed-data-proxy/plugins-sdk/testing';
import plugin from './my-plugin.ts';

describe('my-plugin', () => {
  it('asks the upstream once for all who ask the same', async (t) => {
    let price = 0;
    const upstream = await testUpstream(t, () => ({ data: { price: ++price } }));
    const harness = await testPlugin(plugin, { t, config: { seconds: 60 } });
    const endpoints = [{ name: 'eth', path: '/eth', parameters: [{ name: 'in' }] }];
    const service = await harness.serve({
      apis: [{ name: 'prices', url: upstream.url, auth: { type: 'free' }, endpoints }],
    });
    const ask = async (currency: string) => {
      const { status, body } = await service.ask<Record<string, unknown>>('prices/eth', { in: currency });
      return [status, body.rawData];
    };
    const first = [200, { price: 1 }];
    assert.deepEqual(await Promise.all([ask('usd'), ask('usd')]), [first, first]);
    assert.deepEqual(await ask('usd'), first);
    assert.deepEqual(await ask('eur'), [200, { price: 2 }]);
  });
});
