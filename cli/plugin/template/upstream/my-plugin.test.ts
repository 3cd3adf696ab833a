import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, it } from 'node:test';
import { testPlugin, testUpstream } from 'signed-data-proxy/plugins-sdk/testing';
import plugin from './my-plugin.ts';

describe('my-plugin', () => {
  it('signs what goes upstream', async (t) => {
    const upstream = await testUpstream(t, () => ({ data: { price: 1 } }));
    const secret = '0123456789abcdef';
    const harness = await testPlugin(plugin, { t, config: { secret } });
    const endpoints = [{ name: 'eth', path: '/eth', method: 'POST', parameters: [{ name: 'symbol', in: 'body' }] }];
    const service = await harness.serve({
      apis: [{ name: 'prices', url: upstream.url, auth: { type: 'free' }, endpoints }],
    });
    assert.equal((await service.ask('prices/eth', { symbol: 'ETH' })).status, 200);
    const [request] = upstream.requests;
    const signed = `POST\n${upstream.url}/eth\n{"symbol":"ETH"}`;
    assert.equal(request?.headers['x-signature'], createHmac('sha256', secret).update(signed).digest('hex'));
    assert.equal(request?.body, '{"symbol":"ETH"}');
  });
});
