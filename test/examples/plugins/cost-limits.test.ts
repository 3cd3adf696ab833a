/** cost-limits refuses clients that have spent their allowance. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { example } from '../../support/examples.ts';
import { assertRefused } from '../../support/http.ts';
import { oneApi, serviceFor } from '../../support/service.ts';
import { faults, upstreamFor } from '../../support/upstream.ts';

const KEYS = [
  { name: 'ada', key: '0123456789abcdef' },
  { name: 'bob', key: 'fedcba9876543210' },
];
const ada = { 'X-Api-Key': '0123456789abcdef' };
const bob = { 'X-Api-Key': 'fedcba9876543210' };

async function start(t: TestContext, { limit = {}, settings = {} }: { limit?: object; settings?: object } = {}) {
  const upstream = await upstreamFor(t, { '*': faults.json(7) });
  const auth = { type: 'apiKey', keys: KEYS };
  const endpoints = { one: { auth }, six: { auth, cost: 6 }, free: { auth, cost: 0 }, open: { cost: 6 } };
  const plugins = [example('cost-limits', { max: 10, window: '1h', ...limit })];
  const config = oneApi(upstream.url, endpoints, { settings: { plugins, ...settings } });
  const service = await serviceFor(t, config);
  return { upstream, service, config };
}

describe('cost-limits', () => {
  it('an answer costs what its endpoint says, to each client by itself', async (t) => {
    const { service, upstream } = await start(t);
    const ask = async (name: string, headers = {}) => (await service.post(`api/${name}`, {}, headers)).status;
    const asked = [
      await ask('six', ada),
      await ask('six', ada),
      await ask('one', ada),
      await ask('one', ada),
      await ask('one', ada),
      await ask('one', ada),
      await ask('one', ada),
      await ask('free', ada),
      await ask('six', bob),
      await ask('open'),
      await ask('open'),
    ];
    assert.deepEqual(asked, [200, 429, 200, 200, 200, 200, 429, 200, 200, 200, 429]);
    assert.equal(upstream.requests.length, 8);
  });

  it('tells who has used it up when there is enough again', async (t) => {
    const { service } = await start(t);
    await service.post('api/six', {}, ada);
    const response = await service.post('api/six', {}, ada);
    // Two of ten are missing: a fifth of an hour, but for what has flowed in since.
    const seconds = Number(response.headers.get('retry-after'));
    assert.ok(seconds > 600 && seconds <= 720, String(seconds));
    await assertRefused(response, 429, 'Too Many Requests');
  });

  it('lets no more through where many ask at once', async (t) => {
    const { service } = await start(t);
    const all = await Promise.all(Array.from({ length: 10 }, () => service.post('api/six', {}, ada)));
    assert.equal(all.filter(({ status }) => status === 200).length, 1);
  });

  it('takes from the engine of `settings.state`, where there is one', async (t) => {
    const state = { type: 'file', path: 'state' };
    const { service } = await start(t, { settings: { state } });
    assert.equal((await service.post('api/six', {}, ada)).status, 200);
    assert.equal((await service.post('api/six', {}, ada)).status, 429);
  });

  it('does not start where an answer costs more than anyone has', async (t) => {
    await assert.rejects(start(t, { limit: { max: 5 } }), /an answer of api\/six costs more than max/);
  });
});
