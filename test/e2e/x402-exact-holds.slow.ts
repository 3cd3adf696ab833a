import assert from 'node:assert/strict';
import { after, afterEach, before, it, type TestContext } from 'node:test';
import type { PaymentPayload } from '@x402/core/types';
import { CuttingProxy } from '../state/redis-proxy.ts';
import { describeServers, RedisServer } from '../state/redis-server.ts';
import { submitted } from '../support/async.ts';
import { assertRefused } from '../support/http.ts';
import { type RunningService, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { retried } from '../support/wait.ts';
import { type Account, PRICE, paidBy, payloadFor } from '../support/x402-exact.ts';
import { openShop, type Shop } from '../support/x402-shop.ts';

const BUSY = 'Payment is being settled, try again';

describeServers('x402-exact: an authorisation that was not settled is usable again', (program) => {
  let shop: Shop;
  let redis: RedisServer;
  let alice: Account;

  before(async () => {
    [shop, redis] = await Promise.all([openShop(), RedisServer.start(program)]);
    alice = await shop.market.wallet(1_000_000n);
  });
  after(async () => {
    await shop?.close();
    await redis?.stop();
  });
  /** The engine cannot be reached for a moment. */
  const cutOff = (proxy: CuttingProxy) => {
    proxy.isAway = true;
    setTimeout(() => (proxy.isAway = false), 600);
  };
  afterEach(() => {
    shop.upstream.json('/p', { price: 7 });
    shop.facilitator.reset();
  });

  let prefixes = 0;
  async function start(t: TestContext) {
    const proxy = await CuttingProxy.start(t, redis.port);
    prefixes += 1;
    const state = { type: 'redis', url: proxy.url, prefix: `${program}${prefixes}:` };
    const endpoints = { sync: {}, async: { mode: 'async' } };
    const service = await serviceFor(t, shop.config(endpoints, { settings: { state } }, { timeout: 30_000 }));
    const [payload, had] = [await payloadFor(service, 'a/sync', alice), await shop.market.balance(alice.address)];
    const key = async () => {
      const keys = await redis.command('KEYS', `${state.prefix}x402-exact:v:eip155*`);
      assert.ok(Array.isArray(keys) && keys.length === 1);
      return String(keys[0]);
    };
    return { proxy, service, payload, had, key };
  }
  const send = (service: RunningService, payload: PaymentPayload, endpoint = 'a/sync') =>
    service.post(endpoint, {}, paidBy(payload));
  const assertBought = async (response: Response, had: bigint) => {
    await verifyEncoded(response, TEST_ADDRESS);
    assert.equal(await shop.market.balance(alice.address), had - PRICE);
  };

  it('where the engine was cut off while the upstream failed', async (t) => {
    const { proxy, service, payload, had } = await start(t);
    shop.upstream.on('/p', (...args) => {
      cutOff(proxy);
      return faults.serverError()(...args);
    });
    await assertRefused(await send(service, payload), 502, 'API call failed');
    shop.upstream.json('/p', { price: 7 });
    await retried(async () => {
      const response = await send(service, payload);
      if (response.status === 402) assert.equal(((await response.json()) as { error: string }).error, BUSY);
      assert.equal(response.status, 200);
      await assertBought(response, had);
    });
  });

  it('where its process died before the settlement: with the end of the authorisation; after that it stays listed', async (t) => {
    const { service, payload, had, key } = await start(t);
    const look = async () => {
      const { state } = JSON.parse(String(await redis.command('GET', await key())));
      return [state, Number(await redis.command('PTTL', await key()))] as const;
    };
    const end = Number((payload.payload.authorization as { validBefore: string }).validBefore) * 1000;
    // What a dead process leaves is what stands there in the middle of a request.
    shop.upstream.on('/p', async (...args) => {
      const [state, left] = await look();
      assert.equal(state, 'held');
      assert.ok(Math.abs(Date.now() + left - end - 900_000) < 10_000, `${left}`);
      return faults.json({ price: 7 })(...args);
    });
    shop.facilitator.on('/settle', async (...args) => {
      const [state, left] = await look();
      assert.ok(state === 'settling' && left > 29 * 86_400_000, `${state} ${left}`);
      return shop.facilitator.true['/settle'](...args);
    });
    await assertBought(await send(service, payload), had);
    const [state, left] = await look();
    assert.ok(state === 'settled' && left > 900_000 && left < 86_400_000, `${state} ${left}`);
  });

  it('one that was lost to somebody else is not settled', async (t) => {
    const { service, payload, had, key } = await start(t);
    shop.upstream.on('/p', async (...args) => {
      const mark = JSON.parse(String(await redis.command('GET', await key())));
      await redis.command('SET', await key(), JSON.stringify({ ...mark, by: 'somebody else' }));
      return faults.json({ price: 7 })(...args);
    });
    const response = await send(service, payload);
    assert.deepEqual([response.status, response.headers.get('retry-after')], [402, '1']);
    assert.equal(((await response.json()) as { error: string }).error, BUSY);
    assert.equal(await shop.market.balance(alice.address), had);
  });

  it('a settlement whose mark is lost to the engine is marked as used once that is back', async (t) => {
    const { proxy, service, payload, had, key } = await start(t);
    shop.facilitator.on('/settle', (...args) => {
      cutOff(proxy);
      return shop.facilitator.true['/settle'](...args);
    });
    await assertBought(await send(service, payload), had);
    await retried(async () => assert.match(String(await redis.command('GET', await key())), /"state":"settled"/));
  });

  it('an async request is found again whose engine was away from its settlement on', async (t) => {
    const { proxy, service, had } = await start(t);
    const payload = await payloadFor(service, 'a/sync', alice);
    shop.facilitator.on('/settle', (...args) => {
      proxy.isAway = true;
      return shop.facilitator.true['/settle'](...args);
    });
    const begun = await submitted(await send(service, payload, 'a/async'));
    await retried(async () => assert.equal(await shop.market.balance(alice.address), had - PRICE));
    const [record = ''] = (await redis.command('KEYS', `${program}${prefixes}:async:*`)) as string[];
    assert.equal(await redis.command('DEL', record), 1);
    proxy.isAway = false;
    await retried(async () => {
      const response = await fetch(service.url + begun.pollUrl);
      if (response.status !== 503) assert.equal(response.status, 200, 'a payer would give up');
      const text = await response.text();
      assert.match(text, /"status":"complete"/);
      await verifyEncoded(JSON.parse(text), TEST_ADDRESS);
    });
  });
});
