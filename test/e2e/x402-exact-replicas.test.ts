import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { PaymentPayload } from '@x402/core/types';
import { declarePaymentIdentifierExtension } from '@x402/extensions/payment-identifier';
import { folderWith } from '../cli/run.ts';
import { CuttingProxy } from '../state/redis-proxy.ts';
import { describeServers, redisFor } from '../state/redis-server.ts';
import { finished, submitted } from '../support/async.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { type RunningService, serviceFor, startTestService, TEST_ADDRESS } from '../support/service.ts';
import { verifyEncoded } from '../support/verify.ts';
import { retried } from '../support/wait.ts';
import { PRICE, paidBy, payloadFor, settledAs } from '../support/x402-exact.ts';
import { shopFor } from '../support/x402-shop.ts';

const USED = 'invalid_exact_evm_nonce_already_used';
const BUSY = 'Payment is being settled, try again';

describeServers('x402-exact: services that share their state', async (program) => {
  const [shop, redis] = await Promise.all([shopFor(suite), redisFor(suite, program)]);
  const alice = await shop.market.wallet(1_000_000n);

  const config = (prefix: string, url = redis.url) =>
    shop.config({ sync: {}, async: { mode: 'async' } }, { settings: { state: { type: 'redis', url, prefix } } });
  const send = (service: RunningService, payload: PaymentPayload, endpoint = 'a/sync') =>
    service.post(endpoint, {}, paidBy(payload));
  const errorOf = async (response: Response) => {
    assert.equal(response.status, 402);
    return ((await response.json()) as { error: string }).error;
  };

  describe('while it is there', async () => {
    const [one, other] = [await serviceFor(suite, config('both:')), await serviceFor(suite, config('both:'))];

    it('sell one answer for one authorisation, however many ask at once, and whoever is asked later', async () => {
      for (let round = 0; round < 3; round++) {
        const had = await shop.market.balance(alice.address);
        const payload = await payloadFor(one, 'a/sync', alice);
        const asked = Array.from({ length: 20 }, (_, index) => send(index % 2 === 0 ? one : other, payload));
        const responses = await Promise.all(asked);
        const [good, ...more] = responses.filter(({ status }) => status === 200);
        assert.equal(more.length, 0);
        await verifyEncoded(good, TEST_ADDRESS);
        for (const response of responses)
          if (response !== good)
            assert.equal(await errorOf(response), response.headers.has('retry-after') ? BUSY : USED);
        for (const service of [one, other]) assert.equal(await errorOf(await send(service, payload)), USED);
        assert.equal(await shop.market.balance(alice.address), had - PRICE);
      }
    });

    it('tell of a settlement with the record of an async request, whoever is polled', async () => {
      const begun = await submitted(await send(one, await payloadFor(one, 'a/sync', alice), 'a/async'));
      const record = await finished(other, begun);
      await verifyEncoded(record, TEST_ADDRESS);
      for (const { url } of [one, other]) assert.equal(settledAs(await fetch(url + begun.pollUrl)).success, true);
    });

    it('give what was bought by an identifier again, whoever is asked', async () => {
      const identified = async (service: RunningService) => {
        const payload = await payloadFor(service, 'a/sync', alice);
        const extension = {
          ...declarePaymentIdentifierExtension(),
          info: { required: false, id: 'a-name-of-its-own' },
        };
        return { ...payload, extensions: { 'payment-identifier': extension } };
      };
      const had = await shop.market.balance(alice.address);
      const bought = await send(one, await identified(one));
      const text = await bought.text();
      assert.equal(bought.status, 200, text);
      for (const service of [other, one]) {
        const again = await send(service, await identified(service));
        assert.equal(await again.text(), text);
        assert.deepEqual(settledAs(again), settledAs(bought));
      }
      assert.equal(await shop.market.balance(alice.address), had - PRICE);
    });
  });

  it('settle nothing while the state is away', async (t) => {
    const proxy = await CuttingProxy.start(t, redis.port);
    const service = await startTestService(config('away:', proxy.url));
    const payload = await payloadFor(service, 'a/sync', alice);
    const had = await shop.market.balance(alice.address);
    const settled = shop.facilitator.asked('/settle');
    proxy.isAway = true;
    await assertRefused(await send(service, payload), 401, 'Payment verification unavailable');
    assert.equal(shop.facilitator.asked('/settle'), settled);
    assert.equal(await shop.market.balance(alice.address), had);
    proxy.isAway = false;
    await retried(async () => assert.equal((await send(service, payload)).status, 200));
    assert.equal(await shop.market.balance(alice.address), had - PRICE);
    // Before its engine is gone for good: it gives back what requests have held.
    await service.stop();
  });
});

it('x402-exact: what was bought is remembered in a file over a restart', async (t) => {
  const shop = await shopFor(t);
  const account = await shop.market.wallet(PRICE * 2n);
  const state = { type: 'file', path: join(await folderWith(t), 'state') };
  const config = shop.config({ sync: {} }, { settings: { state } });
  const first = await startTestService(config);
  const payload = await payloadFor(first, 'a/sync', account);
  await verifyEncoded(await first.post('a/sync', {}, paidBy(payload)), TEST_ADDRESS);
  await first.stop();
  const second = await serviceFor(t, config);
  const verified = shop.facilitator.asked('/verify');
  const response = await second.post('a/sync', {}, paidBy(payload));
  assert.equal(((await response.json()) as { error: string }).error, USED);
  assert.equal(shop.facilitator.asked('/verify'), verified);
});
