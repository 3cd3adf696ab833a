/** An engine that refuses to write costs no payment, and each feature fails as documented. */

import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { describeServers, RedisServer } from '../state/redis-server.ts';
import { assertFires, withoutPromtool } from '../support/alerts.ts';
import { chainFor } from '../support/chain.ts';
import { assertRefused } from '../support/http.ts';
import { stopAll, suite } from '../support/lifetime.ts';
import { type Scrape, scrape, scrapeUntil } from '../support/metrics.ts';
import { encoding, oneApi, type RunningService, startTestService } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
import { retried } from '../support/wait.ts';
import { payer, payNative, proofHeader, termsOn } from '../support/x402.ts';

const failedSwaps = (found: Scrape) => found.table('state_commands_total')['swap failed'] ?? 0;

describeServers('an engine that can be read and refuses to write', async (program) => {
  const [chain, upstream] = await Promise.all([chainFor(suite), upstreamFor(suite)]);
  upstream.json('/p', { price: 7 });

  async function shop(t: TestContext) {
    const redis = await RedisServer.start(program);
    let service: RunningService | undefined;
    // In this order: a service whose engine is gone waits for it, to give back what requests have held.
    t.after(() => stopAll(service, redis));
    const auth = termsOn(chain, 1_000_000n);
    const paid = { p: { path: '/p?paid', encoding } };
    const free = { p: { encoding, cache: { maxAge: 1 } } };
    service = await startTestService({
      server: { rateLimit: { max: 1_000_000, x402: { max: 1_000_000 } } },
      settings: { state: { type: 'redis', url: redis.url }, metrics: { port: 0 } },
      apis: [
        ...oneApi(upstream.url, paid, { api: { name: 'paid', auth } }).apis,
        ...oneApi(upstream.url, free, { api: { name: 'free' } }).apis,
      ],
    });
    // Blocks have whole seconds: one of this second may be older than the ledger of payments.
    await new Promise((done) => setTimeout(done, 1000 - (Date.now() % 1000)));
    return { redis, service };
  }
  const alice = () => payer(chain, 3);
  const redeem = async (service: RunningService, txHash: string) =>
    service.post('paid/p', {}, await proofHeader(alice(), service, 'paid/p', txHash));
  const ready = async ({ url }: RunningService) => (await fetch(`${url}/ready`)).json();
  const told = ({ logs }: RunningService) =>
    logs.flatMap(({ message, fields }) =>
      /engine of settings\.state/.test(message) ? [`${message}: ${String(fields.error)}`] : [],
    );

  for (const [what, key, value, healed, says] of [
    ['its memory is full', 'maxmemory', '1', '0', /away: redis at \S+ answered: OOM command not allowed/],
    ['too few replicas listen', 'min-replicas-to-write', '1', '0', /away: redis at \S+ answered: NOREPLICAS /],
  ] as const) {
    it(`is away where ${what}, until it writes again, and alerts fire`, async (t) => {
      const { redis, service } = await shop(t);
      assert.equal((await redeem(service, await payNative(alice(), 1_000_000n))).status, 200);
      const sold = await scrape(service);
      assert.equal(sold.value('state_available'), 1);
      await redis.command('CONFIG', 'SET', key, value);
      // What is read, and what is given back, succeeds all the while.
      await retried(async () => {
        await assertRefused(await redeem(service, `0x${'ab'.repeat(32)}`), 401, 'Payment verification unavailable');
        assert.equal((await service.post('free/p')).status, 200);
        assert.deepEqual(await ready(service), { status: 'ready', away: ['redis'] });
      });
      const refusing = await scrape(service);
      assert.equal(refusing.value('state_available'), 0);
      assert.equal(told(service).length, 1);
      assert.match(told(service)[0] ?? '', says);
      // Payments of which this process does not know yet that they are in doubt: each is asked for.
      for (const digit of '12345') await redeem(service, `0x${digit.repeat(64)}`);
      // Whichever commands made the engine count as away, probes are `swap` and go on failing.
      const later = await scrapeUntil(service, (found) => failedSwaps(found) > failedSwaps(refusing));
      if (withoutPromtool === false) {
        const after = [
          { scrape: refusing, minutes: 5 },
          { scrape: later, minutes: 1 },
        ];
        const expected = ['StateAway', 'StateCommandsFail', 'SalesStopped'];
        await assertFires(t, [{ scrape: sold, minutes: 30 }, ...after], expected);
      }
      await redis.command('CONFIG', 'SET', key, healed);
      await retried(async () => assert.deepEqual(await ready(service), { status: 'ready' }));
      assert.deepEqual(told(service).slice(1), ['the engine of settings.state is back: undefined']);
      assert.equal((await redeem(service, await payNative(alice(), 1_000_000n))).status, 200);
    });
  }

  it('is found before anybody pays', async (t) => {
    const { redis, service } = await shop(t);
    await redis.command('CONFIG', 'SET', 'maxmemory', '1');
    await retried(async () => assert.deepEqual(await ready(service), { status: 'ready', away: ['redis'] }));
  });
});
