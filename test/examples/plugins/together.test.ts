/** Several example plugins work at one endpoint. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { example } from '../../support/examples.ts';
import { assertRefused } from '../../support/http.ts';
import { bearer, identityProvider } from '../../support/jwt.ts';
import { oneApi, startTestService } from '../../support/service.ts';
import { faults, upstreamFor } from '../../support/upstream.ts';

it('jwt-auth, cost-limits, audit-log and webhook work at one endpoint', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'together-'));
  t.after(() => rm(folder, { recursive: true }));
  const upstream = await upstreamFor(t, { '/e': faults.json({ price: 7 }), '/hook': faults.empty(204) });
  const { method, token } = await identityProvider(upstream);
  const file = join(folder, 'audit.jsonl');
  const plugins = [
    example('jwt-auth'),
    example('cost-limits', { max: 10, window: '1h' }),
    example('audit-log', { file }),
    example('webhook', { url: `${upstream.url}/hook` }),
  ];
  // What is in the cache costs as much, and is logged and sent, too.
  const endpoints = { e: { auth: method, cost: 5, cache: { maxAge: 60_000 } } };
  const service = await startTestService(oneApi(upstream.url, endpoints, { settings: { plugins } }));
  const as = async (sub: string) => service.post('api/e', {}, bearer(await token({ sub })));

  await assertRefused(await service.post('api/e'), 401, 'Missing bearer token');
  const answered = [await as('ada'), await as('ada'), await as('bob')];
  await assertRefused(await as('ada'), 429, 'Too Many Requests');
  const answers = await Promise.all(answered.map(async (response) => JSON.parse(await response.text())));
  await service.stop();

  const expected = answered.map(({ status, headers }, index) => {
    assert.equal(status, 200);
    return [headers.get('x-request-id'), ['ada', 'ada', 'bob'][index], answers[index].signature];
  });
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n');
  const logged = lines.map((line) => JSON.parse(line));
  const shown = logged.map(({ requestId, client, signature }) => [requestId, client, signature]);
  assert.deepEqual(shown, expected);
  const posted = upstream.requests.filter(({ path }) => path === '/hook').map(({ body }) => JSON.parse(body));
  const byId = new Map(posted.map(({ requestId, answer }) => [requestId, answer]));
  const seen = answered.map(({ headers }) => byId.get(headers.get('x-request-id')));
  assert.deepEqual(seen, answers);
  assert.equal(upstream.requests.filter(({ path }) => path === '/e').length, 1);
});
