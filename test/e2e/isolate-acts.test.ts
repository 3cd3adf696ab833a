import assert from 'node:assert/strict';
import { afterEach, before, describe, it } from 'node:test';
import { oneApi } from '../support/answers.ts';
import { recovered } from '../support/isolated.ts';
import { actor, pluginActs } from '../support/plugin-acts.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { type RunningService, startTestService } from '../support/service.ts';
import { tidy } from '../support/tidy.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

let upstream: Upstream;
let service: RunningService;

before(async () => {
  upstream = await startUpstream();
  upstream.json('/price', { price: 7 });
  const { files, plugins } = pluginFiles({ actor }, { actor: { isolate: true, timeout: 1000 } });
  const endpoints = { price: { encoding: { type: 'uint256', path: '$.price' } } };
  service = await startTestService(oneApi(upstream.url, endpoints, { settings: { plugins } }), { files });
});
tidy(() => ({ service, upstream }));
afterEach(() => recovered(service));

const price = (headers: Record<string, string> = {}) => service.post('api/price', {}, headers);

async function answerTo(act: string): Promise<string> {
  const response = await price({ 'x-act': act });
  if (response.status === 200) return '200';
  const { error } = (await response.json()) as { error: string };
  return `${response.status} ${error}`;
}

describe('whatever an isolated plugin does, the service answers, and serves the next request', () => {
  for (const [act, { isolated }] of Object.entries(pluginActs)) {
    it(act, async () => {
      assert.equal(await answerTo(act), isolated);
      const { data } = await verifyEncoded(await price(), service.signer.address);
      assert.equal(BigInt(data), 7n);
    });
  }
});
