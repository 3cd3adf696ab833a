import assert from 'node:assert/strict';
import { it } from 'node:test';
import { testPlugin, testUpstream } from 'signed-data-proxy/plugins-sdk/testing';
import plugin from './my-plugin.ts';

it('signs the text of the member that the endpoint names', async (t) => {
  const upstream = await testUpstream(t, () => ({ data: { symbol: 'ETH', price: 1 } }));
  const harness = await testPlugin(plugin, { t });
  const endpoints = [
    { name: 'symbol', path: '/eth', textOf: 'symbol' },
    { name: 'price', path: '/eth?of=price', textOf: 'price' },
    { name: 'all', path: '/eth?of=all' },
  ];
  const service = await harness.serve({
    apis: [{ name: 'prices', url: upstream.url, auth: { type: 'free' }, endpoints }],
  });
  const ask = async (name: string) => (await service.ask<Record<string, unknown>>(`prices/${name}`)).body;
  assert.equal((await ask('symbol')).data, '0x455448');
  assert.deepEqual(await ask('price'), { error: 'API call failed' });
  assert.deepEqual((await ask('all')).rawData, { symbol: 'ETH', price: 1 });
});
