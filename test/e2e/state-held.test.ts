/** A state file whose disk hangs: each feature does as while its engine is away, and no plugin's budget ends before. */

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { folder, held } from '../state/file-setup.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { oneApi, type RunningService, serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';

const KEY = '31c60d0f9b7e4a5231c60d0f9b7e4a52';
/** So low that the engine is asked each time. */
const LIMIT = { window: '1m', max: 50 };
const auth = { type: 'apiKey', keys: [{ name: 'ada', key: KEY, rateLimit: LIMIT }] };

describe('a state file that hangs', { concurrency: true }, async () => {
  const upstream = await upstreamFor(suite);
  for (const path of ['/free', '/keyed', '/async']) upstream.json(path, { price: 7 });

  async function whileHeld(t: TestContext, rateLimit: object, check: (service: RunningService) => Promise<void>) {
    const path = join(await folder(t), 'state');
    const endpoints = {
      free: { path: '/free' },
      keyed: { path: '/keyed', auth },
      async: { path: '/async', mode: 'async' },
    };
    const settings = { state: { type: 'file', path } };
    const service = await serviceFor(t, oneApi(upstream.url, endpoints, { server: { rateLimit }, settings }));
    const release = await held(path);
    try {
      await check(service);
    } finally {
      await release();
    }
  }

  it('lets requests in by the limits of the process', (t) =>
    whileHeld(t, LIMIT, async (service) => {
      assert.equal((await service.post('api/free')).status, 200);
    }));

  it('lets API keys in by the limits of the process, and has no room for async requests', (t) =>
    whileHeld(t, { max: 1000 }, async (service) => {
      const [keyed, async] = await Promise.all([
        service.post('api/keyed', {}, { 'X-Api-Key': KEY }),
        service.post('api/async'),
      ]);
      assert.equal(keyed.status, 200);
      await assertRefused(async, 503, 'Service Unavailable');
    }));
});
