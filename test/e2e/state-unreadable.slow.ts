/** What somebody else wrote into the engine sells nothing and ends nobody. */

import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { describeServers, redisFor } from '../state/redis-server.ts';
import { finished, submitted } from '../support/async.ts';
import { chainFor } from '../support/chain.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { encoding, oneApi, type RunningService, serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
import { retried } from '../support/wait.ts';
import { payer, payNative, proofHeader, termsOn } from '../support/x402.ts';

const PRICE = 1_000_000n;
const BUSY = 'Service Unavailable';
const UNAVAILABLE = 'Payment verification unavailable';

describeServers('what somebody else wrote into the engine', async (program) => {
  const opening = [chainFor(suite), upstreamFor(suite), redisFor(suite, program)] as const;
  const [chain, upstream, redis] = await Promise.all(opening);
  upstream.json('/p', { price: 7 });

  async function start(t: TestContext): Promise<RunningService> {
    await redis.command('FLUSHALL');
    const paid = { p: { path: '/p?paid', encoding } };
    const free = { async: { path: '/p', mode: 'async', encoding } };
    const service = await serviceFor(t, {
      server: { rateLimit: { max: 6400, window: 3_600_000, x402: { max: 1_000_000 } } },
      settings: { state: { type: 'redis', url: redis.url } },
      apis: [
        ...oneApi(upstream.url, paid, { api: { name: 'paid', auth: termsOn(chain, PRICE) } }).apis,
        ...oneApi(upstream.url, free, { api: { name: 'free' } }).apis,
      ],
    });
    // Blocks have whole seconds: one of this second may be older than the ledger of payments.
    await new Promise((done) => setTimeout(done, 1000 - (Date.now() % 1000)));
    return service;
  }
  const alice = () => payer(chain, 4);
  const pay = async (service: RunningService) =>
    service.post('paid/p', {}, await proofHeader(alice(), service, 'paid/p', await payNative(alice(), PRICE)));
  const keyLike = async (pattern: string) => {
    const keys = await redis.command('KEYS', pattern);
    assert.ok(Array.isArray(keys) && keys.length === 1, `${pattern}: ${String(keys)}`);
    return String(keys[0]);
  };
  /** The reasons that the log gives for requests that failed. */
  const reasons = ({ logs }: RunningService) =>
    logs.flatMap(({ level, fields }) => (level === 'warn' && fields.detail !== undefined ? [fields.detail] : []));
  const isSound = async (service: RunningService) => {
    assert.deepEqual(await (await fetch(`${service.url}/ready`)).json(), { status: 'ready' });
    assert.equal((await finished(service, await submitted(await service.post('free/async')))).status, 'complete');
  };

  for (const garbage of ['complete garbage', 'complete {}', 'headers {"a"\ncomplete x', 'nonsense', '']) {
    it(`an async record ${JSON.stringify(garbage)} is 503, named in the log`, async (t) => {
      const service = await start(t);
      const begun = await submitted(await service.post('free/async'));
      await finished(service, begun);
      const key = await keyLike('sdp:async:v:*');
      await redis.command('SET', key, garbage);
      for (let polls = 0; polls < 6; polls++) await assertRefused(await fetch(service.url + begun.pollUrl), 503, BUSY);
      const named = `what stands under ${key.slice('sdp:'.length).replace(':v:', ':')} in settings.state cannot be read`;
      assert.deepEqual(new Set(reasons(service)), new Set([named]));
      await isSound(service);
    });
  }

  for (const garbage of ['{"began":9e99}', '{"began":"x"}', '[]', 'garbage']) {
    it(`a ledger ${garbage} has payments refused, is named in the log, and harms nothing else`, async (t) => {
      const service = await start(t);
      assert.equal((await pay(service)).status, 200);
      const kept = String(await redis.command('GET', 'sdp:x402:v:ledger'));
      await redis.command('SET', 'sdp:x402:v:ledger', garbage);
      for (let payments = 0; payments < 2; payments++) await assertRefused(await pay(service), 401, UNAVAILABLE);
      const named = 'what stands under x402:ledger in settings.state cannot be read';
      assert.deepEqual(new Set(reasons(service)), new Set([named]));
      await isSound(service);
      await redis.command('SET', 'sdp:x402:v:ledger', kept);
      assert.equal((await pay(service)).status, 200);
    });
  }

  it('a key of another type harms nobody else, however often it is asked for', async (t) => {
    const service = await start(t);
    const begun = await submitted(await service.post('free/async'));
    await finished(service, begun);
    const key = await keyLike('sdp:async:v:*');
    await redis.command('DEL', key);
    await redis.command('LPUSH', key, 'x');
    for (let polls = 0; polls < 10; polls++) await assertRefused(await fetch(service.url + begun.pollUrl), 503, BUSY);
    assert.deepEqual(new Set(reasons(service)), new Set([`what stands under ${key} in settings.state cannot be read`]));
    await isSound(service);
  });

  for (const garbage of ['x', '9e99 9e99', 'nan nan', '']) {
    it(`a bucket ${JSON.stringify(garbage)} is as good as none`, async (t) => {
      const service = await start(t);
      const bucket = await retried(async () => {
        await submitted(await service.post('free/async'));
        return keyLike('sdp:rate-limit:b:*');
      });
      await redis.command('SET', bucket, garbage);
      await retried(async () => {
        await submitted(await service.post('free/async'));
        assert.match(String(await redis.command('GET', bucket)), /^[\d.]+ 1\d{12}[\d.]*$/);
      });
      await isSound(service);
    });
  }
});
