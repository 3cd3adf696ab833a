/** median answers with the median of several upstreams. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AbiCoder } from 'ethers';
import { example } from '../../support/examples.ts';
import { assertRefused } from '../../support/http.ts';
import { suite } from '../../support/lifetime.ts';
import { oneApi, serviceFor } from '../../support/service.ts';
import { faults, type Handler, upstreamFor } from '../../support/upstream.ts';

describe('median', async () => {
  const answer = async (name: string, parameters?: object) => {
    const response = await service.post(`api/${name}`, parameters);
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return JSON.parse(text);
  };

  const upstream = await upstreamFor(suite, { '/own': faults.json({ median: 1 }) });
  const urls = ['a', 'b', 'c'].map((name) => `${upstream.url}/${name}`);
  const median = { urls, member: 'price' };
  const api = { timeout: 1000, maxConcurrentCalls: 1, headers: { 'X-Api-Key': 'k' } };
  const encoding = { type: 'int256', path: '$.median', times: '100' };
  const endpoints = {
    price: { median, encoding, parameters: [{ name: 'symbol' }, { name: 'key', fixed: 's3cret', secret: true }] },
    two: { median: { urls: urls.slice(0, 2) } },
    own: {},
  };
  const service = await serviceFor(
    suite,
    oneApi(upstream.url, endpoints, { api, settings: { plugins: [example('median')] } }),
  );

  it('signs the number in the middle of three, encoded as configured', async () => {
    upstream.json('/a', { price: 12.5 });
    upstream.json('/b', { price: -1000 });
    upstream.json('/c', { price: 13 });
    const { data } = await answer('price', { symbol: 'ETH/USD' });
    assert.equal(data, AbiCoder.defaultAbiCoder().encode(['int256'], [1250]));
    const paths = upstream.requests.map(({ path }) => path).toSorted();
    assert.deepEqual(
      paths,
      ['a', 'b', 'c'].map((name) => `/${name}?symbol=ETH%2FUSD&key=s3cret`),
    );
    assert.deepEqual(new Set(upstream.requests.map(({ headers }) => headers['x-api-key'])), new Set(['k']));
  });

  it('of two, the mean', async () => {
    upstream.json('/a', 4);
    upstream.json('/b', 1);
    assert.deepEqual((await answer('two')).rawData, { median: 2.5 });
  });

  it('does without one of three that fails, lies about its type or never answers', async () => {
    upstream.json('/a', { price: 1 });
    upstream.json('/b', { price: 3 });
    for (const broken of [
      faults.serverError(),
      faults.json({ price: '2' }),
      faults.text('{"price":1e999}'),
      faults.hang(),
    ]) {
      upstream.on('/c', broken);
      assert.equal((await answer('price')).data, AbiCoder.defaultAbiCoder().encode(['int256'], [200]));
    }
  });

  it('is 502 with fewer than half, and the log says why', async () => {
    upstream.json('/a', { price: 1 });
    upstream.on('/b', faults.serverError());
    upstream.json('/c', {});
    await assertRefused(await service.post('api/price'), 502, 'API call failed');
    const line = service.logs.findLast(({ message }) => message === 'API call failed');
    assert.equal(line?.fields.detail, 'upstream status 500; no number');
  });

  it('asks one after the other where the API has one slot', async () => {
    let most = 0;
    const watching: Handler = (...request) => {
      most = Math.max(most, upstream.open);
      return faults.slow(20, faults.json({ price: 1 }))(...request);
    };
    for (const name of ['a', 'b', 'c']) upstream.on(`/${name}`, watching);
    await answer('price');
    assert.equal(most, 1);
  });

  it('leaves other endpoints to the service', async () => {
    assert.deepEqual((await answer('own')).rawData, { median: 1 });
  });
});
