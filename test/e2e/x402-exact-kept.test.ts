/** Answers that are kept never stand in the way of who has paid. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { declarePaymentIdentifierExtension } from '@x402/extensions/payment-identifier';
import { Wallet } from 'ethers';
import { deferred } from '../../lib/time.ts';
import { MemoryArea } from '../../plugins-sdk/state/memory-area.ts';
import type { BucketLimit } from '../../plugins-sdk/state.ts';
import { folderWith } from '../cli/run.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { ownEngine } from '../support/own-engine.ts';
import { type RunningService, serviceFor, startTestService, TEST_ADDRESS } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { eventually } from '../support/wait.ts';
import { askedFor, PRICE, paidBy, payloadFor } from '../support/x402-exact.ts';
import { shopWithPayer } from '../support/x402-shop.ts';

/** What is wrong with an operator's engine: it answers null where an answer is kept; what it says is there; what it waits for. */
let engine: { readonly isOdd?: boolean; readonly found?: string; readonly read?: () => Promise<void> | undefined } = {};
/** Milliseconds by which the engine's clock is ahead. */
let ahead = 0;
/** For how many bytes the engine counts one of an answer: a few answers fill what is there. */
const WEIGHT = 50;
/** Where the engine keeps payments. */
let payments = new MemoryArea();
const own = ownEngine('x402-exact-kept', (name) => {
  const area = new MemoryArea({ now: () => Date.now() + ahead });
  if (name === 'x402-exact') payments = area;
  if (name !== 'x402-exact identifiers') return area;
  return {
    get: async (key: string) => engine.found ?? area.get(key).finally(engine.read),
    compareAndSet: async (...args: Parameters<MemoryArea['compareAndSet']>) =>
      engine.isOdd && args[2]?.includes('"sold"') ? null : area.compareAndSet(...args),
    takeTokens: async (key: string, limit: BucketLimit, n: number) => {
      const { granted, left, ...taken } = await area.takeTokens(key, limit, n * WEIGHT);
      return { ...taken, granted: granted / WEIGHT, left: left / WEIGHT };
    },
  };
});

describe('x402-exact: answers that are kept for their payers', async () => {
  const { shop, alice } = await shopWithPayer(suite);

  const identified = async (service: RunningService, id: string, endpoint: string) => {
    const extension = { ...declarePaymentIdentifierExtension(), info: { required: false, id } };
    return { ...(await payloadFor(service, endpoint, alice)), extensions: { 'payment-identifier': extension } };
  };
  const buy = async (service: RunningService, id: string, endpoint = 'a/e') =>
    service.post(endpoint, {}, paidBy(await identified(service, id, endpoint)));

  it('are not given again by another signer, which is said', async (t) => {
    const state = { type: 'file', path: join(await folderWith(t), 'state') };
    const config = shop.config({ e: {} }, { settings: { state } });
    const former = await startTestService(config);
    await verifyEncoded(await buy(former, 'before-the-rotation'), TEST_ADDRESS);
    await former.stop();
    const { address, privateKey } = Wallet.createRandom();
    const service = await serviceFor(t, config, { env: { SERVICE_PRIVATE_KEY: privateKey } });
    const had = await shop.market.balance(alice.address);
    const again = await buy(service, 'before-the-rotation');
    await assertRefused(again, 409, 'The answer is of a former signer and is not given again');
    assert.equal(await shop.market.balance(alice.address), had);
    await verifyEncoded(await buy(service, 'after-the-rotation'), address);
  });

  const odd = async (t: TestContext) => {
    engine = {};
    ahead = 0;
    const settings = { plugins: [own.plugin], state: own.state };
    const endpoints = { e: {}, long: { path: '/long', encoding: undefined } };
    return serviceFor(t, shop.config(endpoints, { settings }), { files: own.files });
  };

  it('are given to who has paid, whatever goes wrong while they are kept', async (t) => {
    const service = await odd(t);
    engine = { isOdd: true };
    const had = await shop.market.balance(alice.address);
    await verifyEncoded(await buy(service, 'an-engine-that-is-odd'), TEST_ADDRESS);
    assert.equal(await shop.market.balance(alice.address), had - PRICE);
  });

  it('are not there yet while they are being kept: who repeats the request is told to try again', async (t) => {
    const service = await odd(t);
    const payload = await identified(service, 'repeated-at-once', 'a/e');
    const send = () => service.post('a/e', {}, paidBy(payload));
    const kept = deferred<void>();
    let reads = 0;
    // The third read is by who keeps the answer. The fifth is by who looks for it before that, and goes on afterwards.
    engine = { read: () => ([3, 5].includes(++reads) ? kept.promise : undefined) };
    const first = send();
    await eventually(() => reads === 3);
    const repeated = [await send(), send()];
    await eventually(() => reads === 5);
    kept.resolve();
    for (const response of repeated) assert.equal((await askedFor(await response)).reason, 'payment_in_progress');
    assert.equal(await (await send()).text(), await (await first).text());
  });

  const MINUTE = 60_000;
  const lost = {
    'whose settlement is unknown': () => shop.facilitator.on('/settle', faults.serverError()),
    'whose answer could not be kept': () => (engine = { isOdd: true }),
  };
  for (const [what, lose] of Object.entries(lost))
    it(`or may have been sold: a payment ${what} is not made again within the hour, although its authorisation has ended`, async (t) => {
      t.after(() => shop.facilitator.reset());
      const service = await odd(t);
      lose();
      await (await buy(service, 'lost-on-its-way-here')).arrayBuffer();
      shop.facilitator.reset();
      engine = {};
      const had = await shop.market.balance(alice.address);
      for (const minutes of [0, 21, 38]) {
        ahead += minutes * MINUTE;
        const { reason } = await askedFor(await buy(service, 'lost-on-its-way-here'));
        assert.equal(reason, 'payment_in_progress');
      }
      assert.equal(await shop.market.balance(alice.address), had);
      ahead += 2 * MINUTE;
      await verifyEncoded(await buy(service, 'lost-on-its-way-here'), TEST_ADDRESS);
    });

  it('take at most 8 MiB of a payer, and what finds no room takes none of it', async (t) => {
    const service = await odd(t);
    shop.upstream.json('/long', 'x'.repeat(30_000));
    const ids = Array.from({ length: 8 }, (_, n) => `of-many-answers-${n}`);
    let bytes = 0;
    for (const [index, id] of ids.entries()) {
      // Room comes after 5.5 minutes, and then every 22.
      if (index >= 3) ahead += (index === 3 ? 5.5 : 11) * MINUTE;
      bytes = (await (await buy(service, id, 'a/long')).arrayBuffer()).byteLength * WEIGHT;
      // The third is the first for which too little is left: it is enough for a small one.
      if (index === 2) await (await buy(service, 'of-a-small-answer')).arrayBuffer();
    }
    const again = await Promise.all(ids.map((id) => buy(service, id, 'a/long')));
    const kept = again.filter(({ status }) => status === 200).length * bytes;
    assert.ok(kept > 4 * 2 ** 20 && kept <= 8 * 2 ** 20, `${kept} bytes`);
    assert.deepEqual(new Set(again.map(({ status }) => status)), new Set([200, 409]));
    assert.equal((await buy(service, 'of-a-small-answer')).status, 200);
  });

  it('are not sold where too many payments have no known end, which is said before anything is verified', async (t) => {
    const service = await odd(t);
    await payments.compareAndSet('old', undefined, JSON.stringify({ state: 'unknown', refunds: 0 }));
    const full = JSON.stringify(Array.from({ length: 1000 }, () => 'old token'));
    for (let list = 0; list < 256; list++) await payments.compareAndSet(`open ${list}`, undefined, full);
    const verified = shop.facilitator.asked('/verify');
    await assertRefused(await buy(service, 'there-is-no-room'), 401, 'Payment verification unavailable');
    assert.equal(shop.facilitator.asked('/verify'), verified);
    const said = service.logs.flatMap(({ fields }) => fields.detail ?? []);
    assert.deepEqual(new Set(said), new Set(['no room for another payment without a known end']));
  });

  it('and cannot be read, are no answer and cost nothing', async (t) => {
    const service = await odd(t);
    const had = await shop.market.balance(alice.address);
    for (const found of ['{"sold":', 'null', '7']) {
      engine = { found };
      await assertRefused(await buy(service, 'what-somebody-wrote'), 401, 'Payment verification unavailable');
    }
    assert.equal(await shop.market.balance(alice.address), had);
  });
});
