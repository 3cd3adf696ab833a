import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { finished, submitted } from '../support/async.ts';
import { endpointUrl, JSON_HEADERS } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { verifyEncoded } from '../support/verify.ts';
import { RECIPIENT } from '../support/x402.ts';
import { PRICE, payingFetch, settledAs } from '../support/x402-exact.ts';
import { shopWithPayer } from '../support/x402-shop.ts';

describe('x402-exact: what the public client library buys', async () => {
  const { shop, alice } = await shopWithPayer(suite);
  const cached = { cache: { maxAge: 600_000 } };
  const endpoints = { sync: {}, stream: { mode: 'stream' }, async: { mode: 'async' }, cached };
  const service = await serviceFor(suite, shop.config(endpoints));

  const balances = async () =>
    [await shop.market.balance(alice.address), await shop.market.balance(RECIPIENT)] as const;
  const post = { method: 'POST', headers: JSON_HEADERS, body: '{}' };
  const buy = (endpoint: string) => payingFetch(alice, shop.market)(endpointUrl(service, `a/${endpoint}`), post);
  /** Asserts that just this was paid meanwhile. */
  const costs = async (amount: bigint, work: () => Promise<void>) => {
    const [mine, theirs] = await balances();
    await work();
    assert.deepEqual(await balances(), [mine - amount, theirs + amount]);
  };
  const assertSettled = async (response: Pick<Response, 'headers'>) => {
    const { transaction, ...settled } = settledAs(response);
    const { network } = shop.market;
    assert.deepEqual(settled, { success: true, network, payer: alice.address, amount: String(PRICE) });
    const receipt = await shop.chain.provider.getTransactionReceipt(transaction);
    assert.equal(receipt?.status, 1);
  };

  it('a verified answer, for just its price', async () => {
    await costs(PRICE, async () => {
      const response = await buy('sync');
      await assertSettled(response);
      assert.equal(BigInt((await verifyEncoded(response, TEST_ADDRESS)).data), 7n);
    });
  });

  it('a stream', async () => {
    await costs(PRICE, async () => {
      const response = await buy('stream');
      await assertSettled(response);
      const [, data = ''] = /^data: (\{.*\})\n\n$/.exec(await response.text()) ?? [];
      await verifyEncoded(JSON.parse(data), TEST_ADDRESS);
    });
  });

  it('an async answer: paid once it is there, and told with it', async () => {
    await costs(PRICE, async () => {
      const begun = await submitted(await buy('async'));
      const record = await finished(service, begun);
      assert.equal(record.status, 'complete');
      await verifyEncoded(record, TEST_ADDRESS);
      await assertSettled(await fetch(service.url + begun.pollUrl));
    });
  });

  it('an answer out of the cache: each payer pays', async () => {
    const before = shop.upstream.requests.length;
    await costs(2n * PRICE, async () => {
      const [one, other] = [await buy('cached'), await buy('cached')];
      await assertSettled(one);
      await assertSettled(other);
      assert.notEqual(settledAs(one).transaction, settledAs(other).transaction);
      assert.match(other.headers.get('cache-status') ?? '', /; hit;/);
      assert.equal(await one.text(), await other.text());
    });
    assert.equal(shop.upstream.requests.length, before + 1);
  });

  it('one of several that ask at once pays for itself alone', async () => {
    await costs(5n * PRICE, async () => {
      const responses = await Promise.all(Array.from({ length: 5 }, () => buy('sync')));
      for (const response of responses) await verifyEncoded(response, TEST_ADDRESS);
    });
  });
});
