/** The harness reports what the service would, reads metrics, and moves the clock. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { definePlugin, Refusal, type Services, Type } from 'signed-data-proxy/plugins-sdk';
import { MemoryArea } from 'signed-data-proxy/plugins-sdk/state';
import { testPlugin } from 'signed-data-proxy/plugins-sdk/testing';
import { complaintsOf } from '../support/complaints.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

/** A config with one endpoint, whose upstream has a price. */
async function configFor(t: TestContext, api: object = {}) {
  const upstream = await upstreamFor(t, { '/eth': faults.json({ price: 1 }) });
  const endpoints = [{ name: 'eth', path: '/eth' }];
  return { upstream, config: { apis: [{ name: 'p', url: upstream.url, auth: { type: 'free' }, ...api, endpoints }] } };
}

describe('harness.complaints', () => {
  it('have what would stop the start of the service', async () => {
    const schema = Type.Object({}, { additionalProperties: false });
    const halves = definePlugin({
      name: 'p',
      auth: { token: schema },
      modes: ['live'],
      setup: () => ({ hooks: { authenticate: { tokens: () => true } } }),
    });
    assert.deepEqual(complaintsOf(await testPlugin(halves)), [
      ['start', '"auth" has "token", which no plugin checks in "hooks.authenticate"'],
      ['start', '"modes" has "live", which no plugin delivers in "hooks.present"'],
    ]);
    const picky = definePlugin({
      name: 'p',
      check: ({ endpoints }) => endpoints.map(({ path }) => ({ level: 'error', path, message: 'is not wanted' })),
      setup: () => ({}),
    });
    const found = [['start', 'apis[0].endpoints[0]: is not wanted']];
    assert.deepEqual(complaintsOf(await testPlugin(picky, { services: { config: {} } })), found);
    assert.deepEqual(complaintsOf(await testPlugin(picky)), []);
  });

  it('have results of a wrong shape at every stage, and no deliberate refusal', async () => {
    const plugin = definePlugin({
      name: 'p',
      setup: () => ({
        hooks: {
          admit: () => {
            throw new Refusal(429, 'Later');
          },
          onAfterApiCall: () => JSON.parse('{"dta": 1}'),
          respond: () => JSON.parse('{"X-Odd": 1}'),
        },
      }),
    });
    const harness = await testPlugin(plugin);
    assert.deepEqual(await harness.run('admit'), { refused: { status: 429, message: 'Later' } });
    await harness.run('onAfterApiCall');
    await harness.request().run('respond', { headers: {} });
    const hooks = complaintsOf(harness).map(([hook]) => hook);
    assert.deepEqual(hooks, ['onAfterApiCall', 'respond']);
    for (const [, message = ''] of complaintsOf(harness)) assert.match(message, /returned|must|data|header/);
  });
});

/** Counts requests, and how long they took. */
const measuring = definePlugin({
  name: 'p',
  setup: ({ meters }) => {
    const asked = meters.counter({ name: 'asked_total', help: 'a', labels: ['ip'], initial: [{ ip: '::1' }] });
    const all = meters.counter({ name: 'all_total', help: 'a' });
    const took = meters.histogram({ name: 'took_seconds', help: 't' });
    let last = 0;
    meters.gauge({ name: 'last', help: 'l' }, () => last);
    return {
      hooks: {
        onHttpRequest: ({ ip }) => {
          asked({ ip });
          all({}, 2);
          took({}, 0.25);
          last += 1;
        },
      },
    };
  },
});

describe('harness.metrics', () => {
  it('has each series, and a counter adds 1 unless it is told more', async () => {
    const harness = await testPlugin(measuring);
    assert.deepEqual(harness.metrics(), { 'asked_total{ip="::1"}': 0, last: 0 });
    await harness.run('onHttpRequest', { ip: '192.0.2.1' });
    await harness.run('onHttpRequest', { ip: '192.0.2.1' });
    assert.deepEqual(harness.metrics(), {
      all_total: 4,
      'asked_total{ip="192.0.2.1"}': 2,
      'asked_total{ip="::1"}': 0,
      last: 2,
      took_seconds_count: 2,
      took_seconds_sum: 0.5,
    });
  });

  it('is that of a whole service, and a counter adds 1 where metrics are exported, too', async (t) => {
    const harness = await testPlugin(measuring, { t });
    const { config } = await configFor(t, { rateLimit: undefined });
    const service = await harness.serve(config);
    await service.ask('p/eth', {}, { ip: '192.0.2.1' });
    const metrics = service.metrics();
    assert.deepEqual([metrics['asked_total{ip="192.0.2.1"}'], metrics.all_total], [1, 2]);
    assert.deepEqual(harness.metrics(), { 'asked_total{ip="::1"}': 0, last: 0 });
  });

  it('makes a complaint of what cannot be measured, once', async () => {
    const measure = ({ meters }: Services) => {
      const odd = meters.counter({ name: 'odd_total', help: 'o', labels: ['a'] });
      const hook = ({ ip }: { readonly ip: string }) => {
        if (ip === '::1') odd({ a: 'x' }, -1);
        Reflect.apply(odd, undefined, [{ b: 'x' }]);
      };
      return { hooks: { onHttpRequest: hook } };
    };
    const harness = await testPlugin(definePlugin({ name: 'p', setup: measure }));
    await harness.run('onHttpRequest');
    await harness.run('onHttpRequest', { ip: '::1' });
    assert.deepEqual(complaintsOf(harness), [
      ['metrics', 'the instrument "odd_total" cannot be measured: Error: has no label "b"'],
    ]);
    assert.deepEqual(harness.metrics(), {});
  });
});

describe('harness.advance', () => {
  /** Lets each address in once a day. */
  const daily = definePlugin({
    name: 'p',
    setup: ({ now }) => {
      const seen = new MemoryArea({ now });
      const once = async ({ ip }: { readonly ip: string }) => {
        const taken = await seen.compareAndSet(ip, undefined, 'seen', { ttl: 86_400_000 });
        return taken === undefined ? undefined : { reject: true as const, status: 429, message: 'Tomorrow' };
      };
      return { hooks: { onHttpRequest: once } };
    },
  });
  const TOMORROW = { refused: { status: 429, message: 'Tomorrow' } };

  it('moves the clock of the plugin', async () => {
    const harness = await testPlugin(daily);
    assert.deepEqual(await harness.run('onHttpRequest'), { passed: true });
    harness.advance(86_399_000);
    assert.deepEqual(await harness.run('onHttpRequest'), TOMORROW);
    harness.advance(1000);
    assert.deepEqual(await harness.run('onHttpRequest'), { passed: true });
  });

  it('starts from a clock that the test gives', async () => {
    const told: number[] = [];
    const plugin = definePlugin({
      name: 'p',
      setup: ({ now }) => ({ hooks: { onError: () => void told.push(now()) } }),
    });
    const harness = await testPlugin(plugin, { services: { now: () => 5000 } });
    harness.advance(250);
    await harness.run('onError');
    assert.deepEqual(told, [5250]);
  });

  it('moves the clock of a whole service: what it signs, and what it keeps for a time', async (t) => {
    const harness = await testPlugin(daily, { t });
    const { config, upstream } = await configFor(t, { cache: { maxAge: '1h' } });
    const service = await harness.serve(config);
    const ask = async (ip: string) => {
      const { status, body } = await service.ask<{ timestamp?: number }>('p/eth', {}, { ip });
      return { status, timestamp: body.timestamp ?? 0 };
    };
    const first = await ask('192.0.2.1');
    assert.deepEqual([first.status, (await ask('192.0.2.1')).status], [200, 429]);
    assert.equal((await ask('192.0.2.2')).timestamp, first.timestamp);
    assert.equal(upstream.requests.length, 1);
    harness.advance(86_400_000);
    const later = await ask('192.0.2.1');
    assert.deepEqual([later.status, upstream.requests.length], [200, 2]);
    const passed = later.timestamp - first.timestamp;
    assert.ok(passed >= 86_400 && passed < 86_520, String(passed));
  });
});
