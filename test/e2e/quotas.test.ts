/** Responses say which limit applies, and what is left of it. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { describeServers, redisFor } from '../state/redis-server.ts';
import { errorsOf } from '../support/config.ts';
import { suite } from '../support/lifetime.ts';
import { type RunningService, serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';

const ADA = 'a'.repeat(32);
const ADA_NEW = 'b'.repeat(32);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Nobody is limited by address, and no header tells of it. */
const OPEN = { rateLimit: { trustForwardedFor: true } };

describe('limits and what responses say of them', async () => {
  const upstream = await upstreamFor(suite);
  upstream.json('/p', { price: 1 });
  upstream.json('/failing', {}, 500);

  const configOf = (rateLimit: object | undefined, { server = OPEN, settings = {} }: Config = {}) => ({
    server,
    settings: { openapi: true, ...settings },
    apis: [
      {
        name: 'open',
        url: upstream.url,
        auth: { type: 'free' },
        endpoints: [{ name: 'p', path: '/p', cache: { maxAge: HOUR } }],
      },
      {
        name: 'keyed',
        url: upstream.url,
        auth: {
          type: 'apiKey',
          keys: [
            { name: 'ada', key: ADA, ...(rateLimit && { rateLimit }) },
            { name: 'ada', key: ADA_NEW, ...(rateLimit && { rateLimit }) },
          ],
        },
        endpoints: [
          { name: 'p', path: '/p?keyed' },
          { name: 'failing', path: '/failing' },
        ],
      },
    ],
  });
  interface Config {
    readonly server?: object;
    readonly settings?: object;
  }

  async function start(t: TestContext, ...config: Parameters<typeof configOf>): Promise<RunningService> {
    return await serviceFor(t, configOf(...config));
  }

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
      const service = await start(t, server === OPEN ? undefined : { perDay: 9 }, { server });
      for (const endpoint of ['open/p', 'keyed/p'])
        assert.deepEqual(said(await ask(service, endpoint)), [200, null, null, null]);
    }
  });

  it('a key has limits by window, day and month of the calendar in UTC, which begin anew at its edges', async (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: Date.UTC(2028, 0, 31, 23, 59) });
    const service = await start(t, { window: HOUR, max: 100, perDay: 2, perMonth: 3 });
    const january = '"key";q=100;w=3600, "day";q=2;w=86400, "month";q=3;w=2678400';
    const first = said(await ask(service));
    assert.deepEqual(first, [200, january, '"key";r=99;t=36, "day";r=1;t=60, "month";r=2;t=60', null]);
    // A failure and another key of the same client count as well; a wrong key and an unknown one count for nobody.
    assert.equal((await ask(service, 'keyed/failing', ADA_NEW)).status, 502);
    assert.deepEqual(said(await ask(service, 'keyed/p', `${ADA}, ${ADA}`)), [401, null, null, null]);
    assert.deepEqual(said(await ask(service, 'keyed/p', ADA.toUpperCase())), [401, null, null, null]);
    const [status, , left, retryAfter] = said(await ask(service));
    assert.deepEqual(
      [status, String(left).split(', ').slice(1), retryAfter],
      [429, ['"day";r=0;t=60', '"month";r=1;t=60'], '60'],
    );
    t.mock.timers.setTime(Date.UTC(2028, 1, 1));
    const february = '"key";q=100;w=3600, "day";q=2;w=86400, "month";q=3;w=2505600';
    assert.deepEqual(
      (await Promise.all([ask(service), ask(service)])).map(({ status }) => status),
      [200, 200],
    );
    // A clock that is set back gives nobody a day again.
    t.mock.timers.setTime(Date.UTC(2028, 0, 31, 23, 59, 59));
    assert.equal((await ask(service)).status, 429);
    t.mock.timers.setTime(Date.UTC(2028, 1, 29));
    const last = said(await ask(service));
    assert.deepEqual([last[0], last[1]], [200, february]);
    const over = said(await ask(service));
    assert.deepEqual([over[0], over[3], String(over[2]).split(', ')[2]], [429, '86400', '"month";r=0;t=86400']);
    const reasons = service.logs.flatMap(({ fields }) => (typeof fields.detail === 'string' ? fields.detail : []));
    assert.deepEqual(
      [...new Set(reasons.filter((reason) => reason.includes('used up')))],
      ['day', 'month'].map((period) => `this client has used up the ${period} of the rateLimit of its key`),
    );
  });

  it('a limit that is none is an error', async () => {
    const at = 'apis[1].auth.keys[0].rateLimit';
    for (const [rateLimit, message] of [
      [{}, 'limits nothing: set window and max, perDay or perMonth'],
      [{ max: 1, perDay: 2 }, 'window and max belong together: set both'],
      [{ perDay: 0 }, undefined],
      [{ perday: 1 }, undefined],
    ] as const) {
      const errors = await errorsOf(configOf(rateLimit));
      if (message === undefined)
        assert.ok(
          errors.some((line) => line.startsWith(at)),
          errors.join('\n'),
        );
      else assert.ok(errors.includes(`${at}: ${message}`), errors.join('\n'));
    }
  });

  describeServers('with an engine', (program) => {
    it('replicas count a key together, and a new one goes on where they are', async (t) => {
      const redis = await redisFor(t, program);
      const settings = { state: { type: 'redis', url: redis.url } };
      const replica = () => start(t, { perDay: 50, perMonth: 4 }, { settings });
      const [one, other] = [await replica(), await replica()];
      const statuses: number[] = [];
      for (const service of [one, other, one, other, one, other]) statuses.push((await ask(service)).status);
      assert.deepEqual(statuses, [200, 200, 200, 200, 429, 429]);
      const [status, , left] = said(await ask(await replica()));
      assert.deepEqual([status, String(left).replace(/;t=\d+/g, '')], [429, '"day";r=43, "month";r=0']);
    });
  });
});
