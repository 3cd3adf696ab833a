/** response-headers adds headers to every response. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { example } from '../../support/examples.ts';
import { REQUEST_ID } from '../../support/http.ts';
import { served } from '../../support/served.ts';
import { faults } from '../../support/upstream.ts';

it('response-headers adds headers to every response', async (t) => {
  const headers = { 'X-Served-By': 'here', 'Access-Control-Allow-Origin': 'https://a.example' };
  const plugins = [example('response-headers', { headers })];
  const { service } = await served(t, { e: {} }, { answers: { '/e': faults.json(7) }, settings: { plugins } });
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
