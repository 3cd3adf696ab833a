/** prices shows the signed answers of several endpoints on one route. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { example } from '../../support/examples.ts';
import { assertRefused, assertRouteHeaders } from '../../support/http.ts';
import { type Lifetime, suite } from '../../support/lifetime.ts';
import { oneApi, serviceFor } from '../../support/service.ts';
import { faults, upstreamFor } from '../../support/upstream.ts';

describe('prices', async () => {
  const start = (lifetime: Lifetime, config: object, more: object = {}) => {
    const endpoints = { eth: { cache: { maxAge: 60_000 } }, broken: {}, hidden: {} };
    const settings = { plugins: [example('prices', config)] };
    return serviceFor(lifetime, oneApi(upstream.url, endpoints, { settings, ...more }));
  };

  const upstream = await upstreamFor(suite, { '/eth': faults.text('2064.10'), '/broken': faults.serverError() });
  const service = await start(suite, { endpoints: ['api/eth', 'api/broken'] });

  it('shows the signed answers of the endpoints by their names', async () => {
    const alone = await (await service.post('api/eth')).text();
    const response = await fetch(`${service.url}/prices`);
    assertRouteHeaders(response);
    assert.equal(response.status, 200);
    assert.equal(await response.text(), `{"api/eth":${alone},"api/broken":{"error":"API call failed"}}`);
  });

  it('takes a token of the rate limit, and one for each endpoint', async (t) => {
    const limited = await start(
      t,
      { endpoints: ['api/eth'], path: '/p' },
      { server: { rateLimit: { max: 2, window: 3_600_000 } } },
    );
    assert.match(await (await fetch(`${limited.url}/p`)).text(), /^\{"api\/eth":\{"node":/);
    await assertRefused(await fetch(`${limited.url}/p`), 429, 'Too Many Requests');
  });

  it('an endpoint that does not exist stops the start', async (t) => {
    const message = /prices\.ts cannot be set up: there is no endpoint api\/btc$/;
    await assert.rejects(start(t, { endpoints: ['api/btc'] }), message);
  });
});
