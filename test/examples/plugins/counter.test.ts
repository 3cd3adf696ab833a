/** counter counts how requests ended, across a reload. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { example } from '../../support/examples.ts';
import { endpointUrl } from '../../support/http.ts';
import { scrape } from '../../support/metrics.ts';
import { reload } from '../../support/reload.ts';
import { oneApi, serviceFor } from '../../support/service.ts';
import { faults, upstreamFor } from '../../support/upstream.ts';

it('counter counts how requests ended, as a metric and as a route, across a reload', async (t) => {
  const upstream = await upstreamFor(t, {
    '/e': faults.json(7),
    '/broken': faults.serverError(),
    '/hang': faults.hang(),
  });
  const settings = { metrics: { port: 0 }, plugins: [example('counter')] };
  const config = oneApi(upstream.url, { e: {}, broken: {}, hang: {} }, { settings });
  const service = await serviceFor(t, config);
  for (const name of ['e', 'e', 'broken']) await (await service.post(`api/${name}`)).arrayBuffer();
  assert.equal((await reload(service, config)).done, true);
  await (await service.post('api/e')).arrayBuffer();
  const left = fetch(endpointUrl(service, 'api/hang'), {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    signal: AbortSignal.any([AbortSignal.timeout(20_000), gone.signal]),
  }).catch(() => 'gone');
  await upstream.untilRequested('/hang');
  gone.abort();
  assert.equal(await left, 'gone');
  await upstream.untilAborted('/hang');
  const counts = { 'api/e': { signed: 3 }, 'api/broken': { refused: 1 }, 'api/hang': { abandoned: 1 } };
  assert.deepEqual(JSON.parse(await (await fetch(`${service.url}/counts`)).text()), counts);
  const table = (await scrape(service)).table('settlements_total');
  assert.deepEqual(table, { 'api/e signed': 3, 'api/broken refused': 1, 'api/hang abandoned': 1 });
});

const gone = new AbortController();
