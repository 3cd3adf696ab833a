/** Whatever an isolated plugin does, the service answers and serves the next request. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { recovered } from '../support/isolated.ts';
import { suite } from '../support/lifetime.ts';
import { actor, pluginActs } from '../support/plugin-acts.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { oneApi, type RunningService, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

/** Milliseconds: what ends by itself has plenty, so that a busy machine does not end it before. */
const BUDGETS = { short: 1000, long: 60_000 };

const upstream = await upstreamFor(suite, { '*': faults.json({ price: 7 }) });
const services = new Map<string, RunningService>();
for (const [name, timeout] of Object.entries(BUDGETS)) {
  const { files, plugins } = pluginFiles({ actor }, { actor: { isolate: true, timeout } });
  const endpoints = { price: { encoding: { type: 'uint256', path: '$.price' } } };
  services.set(name, await serviceFor(suite, oneApi(upstream.url, endpoints, { settings: { plugins } }), { files }));
}

async function answerTo(service: RunningService, act: string): Promise<string> {
  const response = await service.post('api/price', {}, { 'x-act': act });
  if (response.status === 200) return '200';
  const { error } = (await response.json()) as { error: string };
  return `${response.status} ${error}`;
}

describe('whatever an isolated plugin does, the service answers, and serves the next request', () => {
  for (const [act, { isolated }] of Object.entries(pluginActs)) {
    it(act, async () => {
      const service = services.get(isolated.endsWith('exhausted') ? 'short' : 'long') ?? assert.fail('no service');
      assert.equal(await answerTo(service, act), isolated);
      const { data } = await verifyEncoded(await service.post('api/price'), service.signer.address);
      assert.equal(BigInt(data), 7n);
      await recovered(service);
    });
  }
});
