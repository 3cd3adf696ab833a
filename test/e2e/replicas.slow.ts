/** Two replicas that share their state are as one service. */

import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { it, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { describeServers, redisFor } from '../state/redis-server.ts';
import { finished, submitted } from '../support/async.ts';
import { chainFor } from '../support/chain.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { encoding, oneApi, type RunningService, startTestService, TEST_ADDRESS } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { retried } from '../support/wait.ts';
import { payer, payNative, proofHeader, termsOn } from '../support/x402.ts';

const PRICE = 1_000_000n;
const USED = 'Payment already used';
const UNAVAILABLE = 'Payment verification unavailable';
const BUSY = 'Service Unavailable';

describeServers('two replicas that share their state', async (program) => {
  /** Answers that the upstream owes. */
  const held: ServerResponse[] = [];

  const opening = [chainFor(suite), upstreamFor(suite), redisFor(suite, program)] as const;
  const [chain, upstream, redis] = await Promise.all(opening);
  const alice = payer(chain, 2);
  upstream.json('/p', { price: 7 });
  upstream.on('/held', (_req, res) => void held.push(res));

  type Block = Readonly<Record<string, unknown>>;
  let prefixes = 0;
  /** Two replicas of one config, which share nothing with those of other tests. */
  async function replicas(t: TestContext, limit: Block = {}) {
    prefixes += 1;
    const paid = { sync: { path: '/p?paid', encoding } };
    const free = {
      sync: { path: '/p', encoding },
      async: { path: '/p?a', mode: 'async', encoding },
      held: { mode: 'async', encoding },
      kept: { path: '/held?kept', cache: { maxAge: 600_000 }, encoding },
    };
    const config = {
      server: { rateLimit: { max: 1_000_000, x402: { max: 1_000_000 }, ...limit } },
      settings: { state: { type: 'redis', url: redis.url, prefix: `${program}${prefixes}:` } },
      apis: [
        ...oneApi(upstream.url, paid, { api: { name: 'paid', auth: termsOn(chain, PRICE) } }).apis,
        ...oneApi(upstream.url, free, { api: { name: 'free' } }).apis,
      ],
    };
    const both = [await startTestService(config), await startTestService(config)] as const;
    t.after(() => Promise.all(both.map((service) => service.stop())));
    // Blocks have whole seconds: one of this second may be older than the ledger of payments.
    await setTimeout(1000 - (Date.now() % 1000));
    return both;
  }
  const redeem = async (service: RunningService, txHash: string) =>
    service.post('paid/sync', {}, await proofHeader(alice, service, 'paid/sync', txHash));
  const answered = async (response: Response) =>
    assert.equal(BigInt((await verifyEncoded(response, TEST_ADDRESS)).data), 7n);
  const ready = async ({ url }: RunningService) => (await fetch(`${url}/ready`)).json();
  const answerHeld = () => {
    for (const res of held.splice(0)) res.setHeader('content-type', 'application/json').end('{"price": 9}');
  };

  it('sell one answer for one payment, however many ask at once, and whoever is asked later', async (t) => {
    const [one, other] = await replicas(t);
    for (let round = 0; round < 5; round++) {
      const txHash = await payNative(alice, PRICE);
      const asked = Array.from({ length: 16 }, (_, index) => redeem(index % 2 === 0 ? one : other, txHash));
      const responses = await Promise.all(asked);
      const statuses = responses.map(({ status }) => status).toSorted();
      assert.deepEqual(statuses, [200, ...Array.from({ length: 15 }, () => 401)]);
      for (const service of [one, other]) await assertRefused(await redeem(service, txHash), 401, USED);
    }
  });

  it('give a payment back for all, three times in all', async (t) => {
    const [one, other] = await replicas(t);
    const txHash = await payNative(alice, PRICE);
    upstream.json('/p', { price: -7 });
    t.after(() => upstream.json('/p', { price: 7 }));
    for (const service of [one, other, one, other])
      await assertRefused(await redeem(service, txHash), 502, 'API call failed');
    upstream.json('/p', { price: 7 });
    await assertRefused(await redeem(one, txHash), 401, USED);
    await assertRefused(await redeem(other, txHash), 401, USED);
  });

  it('take no payment that was mined before the state was emptied', async (t) => {
    const [one, other] = await replicas(t);
    const [used, unused] = [await payNative(alice, PRICE), await payNative(alice, PRICE)];
    await answered(await redeem(one, used));
    // The clock of the chain may be ahead by a second or two.
    const block = await chain.provider.getBlock('latest');
    await setTimeout((Number(block?.timestamp) + 1) * 1000 - Date.now());
    await redis.command('FLUSHALL');
    await assertRefused(await redeem(one, used), 401, 'Payment too old');
    await assertRefused(await redeem(other, unused), 401, 'Payment too old');
    await chain.provider.send('evm_increaseTime', [2]);
    await answered(await redeem(other, await payNative(alice, PRICE)));
  });

  it('know each other’s async requests, at every step', async (t) => {
    const [one, other] = await replicas(t);
    const begun = await submitted(await one.post('free/held'));
    const status = async () => (await (await fetch(other.url + begun.pollUrl)).json()) as Block;
    await retried(async () => {
      assert.deepEqual(await status(), { requestId: begun.requestId, status: 'processing', pollUrl: begun.pollUrl });
    });
    await retried(() => assert.equal(held.length, 1));
    answerHeld();
    const record = await finished(other, begun);
    assert.equal(BigInt(String(record.data)), 9n);
    assert.deepEqual(await finished(one, begun), record);
    const failed = await submitted(await other.post('free/async', { _type: 'x' }));
    assert.equal((await finished(one, failed)).status, 'complete');
    await assertRefused(await fetch(`${other.url}/requests/0x${'00'.repeat(32)}`), 404, 'Request not found');
  });

  it('ask the upstream once for one answer, and both give it', async (t) => {
    const [one, other] = await replicas(t);
    upstream.requests.length = 0;
    const asked = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? one : other).post('free/kept'));
    await retried(() => assert.equal(held.length, 1));
    await setTimeout(300);
    assert.equal(held.length, 1);
    answerHeld();
    const texts = await Promise.all(asked.map(async (response) => (await response).text()));
    assert.equal(new Set(texts).size, 1);
    const again = await other.post('free/kept');
    assert.match(again.headers.get('cache-status') ?? '', /^signed-data-proxy; hit; ttl=\d+$/);
    assert.equal(await again.text(), texts[0]);
    assert.equal(upstream.requests.length, 1);
  });

  it('limit a client together', async (t) => {
    const [one, other] = await replicas(t, { max: 40, window: 600_000 });
    const statuses: number[] = [];
    for (let index = 0; index < 40; index++) statuses.push((await one.post('free/sync')).status);
    assert.deepEqual(new Set(statuses), new Set([200]));
    await assertRefused(await one.post('free/sync'), 429, 'Too Many Requests');
    let allowed = 0;
    while ((await other.post('free/sync')).status === 200) {
      allowed += 1;
      assert.ok(allowed < 40, 'the other one limits by itself');
      await setTimeout(25);
    }
  });

  it('refuse what needs the engine while it is away, serve the rest, and heal', async (t) => {
    const [one, other] = await replicas(t);
    const begun = await submitted(await one.post('free/async'));
    const record = await finished(one, begun);
    const [used, unused] = [await payNative(alice, PRICE), await payNative(alice, PRICE)];
    await answered(await redeem(one, used));
    await redis.kill();
    for (const txHash of [used, unused]) await assertRefused(await redeem(other, txHash), 401, UNAVAILABLE);
    await assertRefused(await one.post('free/async'), 503, BUSY);
    await assertRefused(await fetch(one.url + begun.pollUrl), 503, BUSY);
    await answered(await one.post('free/sync'));
    const kept = one.post('free/kept');
    await retried(() => assert.equal(held.length, 1));
    answerHeld();
    assert.equal((await kept).status, 200);
    await retried(async () => assert.deepEqual(await ready(one), { status: 'ready', away: ['redis'] }));
    const messages = ({ logs }: RunningService) =>
      logs.flatMap(({ message }) => (message.includes('settings.state') ? [message] : []));
    await redis.run();
    await retried(async () => {
      for (const service of [one, other]) assert.deepEqual(await ready(service), { status: 'ready' });
    });
    // A connection that breaks is one reason, and a server that is gone may be another one.
    const [away, back] = ['the engine of settings.state is away', 'the engine of settings.state is back'];
    assert.deepEqual([[...new Set(messages(one))], messages(one).at(-1)], [[away, back], back]);
    assert.deepEqual(await finished(other, begun), record);
    await assertRefused(await redeem(other, used), 401, USED);
    await answered(await redeem(other, unused));
  });
});
