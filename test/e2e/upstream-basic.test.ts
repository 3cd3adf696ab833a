/** `headers: {Authorization: {basic: {user, password}}}`. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what stands in a config file
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';

const PASSWORD = 'p:ä s3cret-word';

describe('Basic by user and password', async () => {
  const upstream = await upstreamFor(suite);
  upstream.json('*', 7);
  const basic = { user: 'me@example', password: '${PASSWORD}' };
  const headers = { Authorization: { basic }, 'X-Empty': { basic: { user: '', password: '' } }, 'X-Other': 'x' };
  const endpoints = { e: { parameters: [{ name: 'Authorization', in: 'header' }] } };
  const service = await serviceFor(suite, oneApi(upstream.url, endpoints, { api: { headers } }), { env: { PASSWORD } });

  it('is the base64 of the UTF-8 text, wins over a parameter, and is nowhere in the log', async () => {
    const response = await service.post('api/e', { Authorization: 'Bearer mine' });
    assert.equal(response.status, 200);
    const { headers: sent } = upstream.requests.at(-1) ?? assert.fail('not asked');
    const base64 = Buffer.from(`me@example:${PASSWORD}`, 'utf8').toString('base64');
    assert.deepEqual([sent.authorization, sent['x-empty'], sent['x-other']], [`Basic ${base64}`, 'Basic Og==', 'x']);
    const shown = JSON.stringify(service.logs) + (await response.text());
    for (const secret of [PASSWORD, base64]) assert.ok(!shown.includes(secret));
  });
});
