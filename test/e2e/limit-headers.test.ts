/** Responses say which limit applies, and what is left of it. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { describeServers, redisFor } from '../state/redis-server.ts';
import { suite } from '../support/lifetime.ts';
import { oneApi, type RunningService, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const ADA = 'a'.repeat(32);
const ADA_NEW = 'b'.repeat(32);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Nobody is limited by address, and no header tells of it. */
const OPEN = { rateLimit: { trustForwardedFor: true } };

describe('limits and what responses say of them', async () => {
  const upstream = await upstreamFor(suite, { '*': faults.json({ price: 1 }), '/failing': faults.json({}, 500) });

  const configOf = (
    rateLimit?: object,
    { server = OPEN, settings = {} }: { server?: object; settings?: object } = {},
  ) => {
    const keys = [ADA, ADA_NEW].map((key) => ({ name: 'ada', key, ...(rateLimit && { rateLimit }) }));
    const api = (name: string, auth: object, endpoints: Parameters<typeof oneApi>[1]) =>
      oneApi(upstream.url, endpoints, { api: { name, auth } }).apis[0];
    const open = api('open', { type: 'free' }, { p: { cache: { maxAge: HOUR } } });
    const keyed = api('keyed', { type: 'apiKey', keys }, { p: { path: '/p?keyed' }, failing: {} });
    return { server, settings: { openapi: true, ...settings }, apis: [open, keyed] };
  };
  const start = (t: TestContext, ...config: Parameters<typeof configOf>) => serviceFor(t, configOf(...config));

  const ask = (service: RunningService, endpoint = 'keyed/p', key = ADA) =>
    service.post(endpoint, {}, { 'X-Api-Key': key });

  const said = ({ status, headers }: Response) => [
    status,
    headers.get('RateLimit-Policy'),
    headers.get('RateLimit'),
    headers.get('Retry-After'),
  ];

  it('an address is told how much is left, refused or not, on every route that counts', async (t) => {
    const service = await start(t, undefined, { server: { rateLimit: { max: 3, window: HOUR } } });
    const policy = '"address";q=3;w=3600';
    assert.deepEqual(said(await service.post('open/p')), [200, policy, '"address";r=2;t=1200', null]);
    const found = await fetch(`${service.url}/openapi.json`);
    assert.deepEqual(said(found), [200, policy, '"address";r=1;t=2400', null]);
    assert.deepEqual(said(await service.post('keyed/p')), [401, policy, '"address";r=0;t=3600', null]);
    const [status, ...others] = said(await service.post('open/p'));
    assert.deepEqual([status, ...others.slice(0, 2)], [429, policy, '"address";r=0;t=3600']);
    assert.match(String(others[2]), /^1(?:200|19\d)$/);
    assert.deepEqual(said(await fetch(`${service.url}/health`)), [200, null, null, null]);
    const { components }: { components: { headers: object } } = JSON.parse(await found.text());
    assert.ok('RateLimit' in components.headers && 'RateLimitPolicy' in components.headers);
  });

  it('nothing is said where nobody has chosen a limit, or the operator does not want it', async (t) => {
    for (const server of [OPEN, { rateLimit: { max: 3, headers: false } }]) {
      const service = await start(t, server === OPEN ? undefined : { window: HOUR, max: 9 }, { server });
      for (const endpoint of ['open/p', 'keyed/p'])
        assert.deepEqual(said(await ask(service, endpoint)), [200, null, null, null]);
      assert.doesNotMatch(await (await fetch(`${service.url}/openapi.json`)).text(), /RateLimit-Policy/);
    }
  });

  it('a key is told what all keys of its name have left, refused or not, once it is known', async (t) => {
    const service = await start(t, { window: HOUR, max: 2 });
    const policy = '"key";q=2;w=3600';
    assert.deepEqual(said(await ask(service)), [200, policy, '"key";r=1;t=1800', null]);
    assert.deepEqual(said(await ask(service, 'keyed/p', `${ADA}, ${ADA}`)), [401, null, null, null]);
    assert.deepEqual(said(await ask(service, 'keyed/p', ADA.toUpperCase())), [401, null, null, null]);
    // A failure and another key of the same client count as well.
    assert.deepEqual(said(await ask(service, 'keyed/failing', ADA_NEW)), [502, policy, '"key";r=0;t=3600', null]);
    const [status, ...others] = said(await ask(service));
    assert.deepEqual([status, ...others.slice(0, 2)], [429, policy, '"key";r=0;t=3600']);
    assert.match(String(others[2]), /^1(?:800|79\d)$/);
    const reasons = service.logs.flatMap(({ fields }) => (fields.status === 429 ? [fields.detail] : []));
    assert.deepEqual(reasons, ['this client has sent more than the rateLimit of its key lets in']);
  });

  describeServers('with an engine', (program) => {
    it('replicas count a key together, and a new one goes on where they are', async (t) => {
      const redis = await redisFor(t, program);
      const settings = { state: { type: 'redis', url: redis.url } };
      const replica = () => start(t, { window: HOUR, max: 4 }, { settings });
      const [one, other] = [await replica(), await replica()];
      const statuses: number[] = [];
      for (const service of [one, other, one, other, one, other]) statuses.push((await ask(service)).status);
      assert.deepEqual(statuses, [200, 200, 200, 200, 429, 429]);
      const [status, , left] = said(await ask(await replica()));
      assert.deepEqual([status, String(left).replace(/;t=\d+/g, '')], [429, '"key";r=0']);
    });
  });
});
