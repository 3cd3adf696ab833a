/** response-headers adds headers to every response. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { oneApi } from '../../support/answers.ts';
import { example } from '../../support/examples.ts';
import { REQUEST_ID } from '../../support/http.ts';
import { serviceFor } from '../../support/service.ts';
import { faults, upstreamFor } from '../../support/upstream.ts';

it('response-headers adds headers to every response', async (t) => {
  const upstream = await upstreamFor(t, { '/e': faults.json(7) });
  const headers = { 'X-Served-By': 'here', 'Access-Control-Allow-Origin': 'https://a.example' };
  const plugins = [example('response-headers', { headers })];
  const service = await serviceFor(t, oneApi(upstream.url, { e: {} }, { settings: { plugins } }));
  const responses = [
    await service.post('api/e'),
    await fetch(`${service.url}/health`),
    await fetch(`${service.url}/no`),
  ];
  const statuses = responses.map(({ status }) => status);
  assert.deepEqual(statuses, [200, 200, 404]);
  for (const response of responses) {
    for (const [name, value] of Object.entries(headers)) assert.equal(response.headers.get(name), value);
    assert.match(response.headers.get('x-request-id') ?? '', REQUEST_ID);
  }
});
