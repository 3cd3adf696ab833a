/** When standard payments end, and how long they are remembered. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import type { PaymentPayload } from '@x402/core/types';
import { hexlify, randomBytes } from 'ethers';
import { runCli } from '../cli/run.ts';
import { suite } from '../support/lifetime.ts';
import { tableOf } from '../support/payments.ts';
import { serviceFor } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { askedFor, exactTerms, paidBy, payloadFor } from '../support/x402-exact.ts';
import { shopWithPayer } from '../support/x402-shop.ts';

const HOUR = 3_600_000;
const MARGIN = 900_000;
const ENDED = 'invalid_exact_evm_payload_authorization_valid_before';
const USED = 'invalid_exact_evm_nonce_already_used';

describe('x402-exact: the end of an authorisation', async () => {
  const { shop, alice } = await shopWithPayer(suite);

  /** A service on a clock that stands, and an authorisation for it that is valid for a day. */
  async function start(t: TestContext) {
    const clock = {
      now: Date.now(),
      turnTo(time: number) {
        this.now = time;
      },
    };
    t.mock.method(Date, 'now', () => clock.now);
    t.after(() => {
      shop.facilitator.reset();
      shop.upstream.json('/p', { price: 7 });
    });
    const auth = exactTerms(shop.market, shop.facilitator.url, { maxTimeoutSeconds: 86_400 });
    const service = await serviceFor(t, shop.config({ e: {} }, {}, { auth }));
    const payload: PaymentPayload = await payloadFor(service, 'a/e', alice);
    const { nonce, validBefore } = payload.payload.authorization as { nonce: string; validBefore: string };
    const send = () => service.post('a/e', {}, paidBy(payload));
    /** Sends an authorisation of the same payer that ends in so many seconds. */
    const sendUntil = (seconds: number) => {
      const times = { nonce: hexlify(randomBytes(32)), validBefore: String(Math.floor(clock.now / 1000) + seconds) };
      const authorization = { ...Object(payload.payload.authorization), ...times };
      return service.post('a/e', {}, paidBy({ ...payload, payload: { ...payload.payload, authorization } }));
    };
    /** Of each payment that the command prints. */
    const fatesOf = async (...words: string[]) => {
      const { stdout } = await runCli(t, ['payments', ...words, '-c', join(service.folder, 'config.yaml')]);
      return tableOf(stdout).map(({ fate }) => fate);
    };
    /** Is done while the answer is made. */
    const meanwhile = (work: () => void | Promise<void>) =>
      shop.upstream.on('/p', async (...asked) => {
        await work();
        return faults.json({ price: 7 })(...asked);
      });
    return { clock, end: Number(validBefore) * 1000, nonce, send, sendUntil, fatesOf, meanwhile };
  }
  const settles = (answer: object) =>
    shop.facilitator.json('/settle', { transaction: '', network: shop.market.network, ...answer });
  const settled = { success: true, transaction: `0x${'34'.repeat(32)}` };
  const failed = { success: false, errorReason: 'insufficient_funds' };

  it('is 6 seconds ahead or more, and at most 15 minutes later than the offer says', async (t) => {
    const { sendUntil } = await start(t);
    shop.facilitator.json('/verify', { isValid: true });
    settles(settled);
    const latest = 86_400 + 900;
    const statuses = [];
    for (const seconds of [5, 6, latest, latest + 1]) statuses.push((await sendUntil(seconds)).status);
    assert.deepEqual(statuses, [402, 200, 200, 402]);
  });

  it('while its answer is made has nothing settled', async (t) => {
    const { clock, end, send, meanwhile } = await start(t);
    const asked = shop.facilitator.asked('/settle');
    meanwhile(() => clock.turnTo(end));
    const response = await send();
    assert.deepEqual([response.status, (await askedFor(response)).error], [402, ENDED]);
    assert.equal(shop.facilitator.asked('/settle'), asked);
  });

  it('a moment later does not keep it from being settled', async (t) => {
    const { clock, end, send, meanwhile } = await start(t);
    settles(settled);
    meanwhile(() => clock.turnTo(end - 1));
    assert.equal((await send()).status, 200);
  });

  it('ends a hold, 15 minutes later', async (t) => {
    const { clock, end, send, fatesOf, meanwhile } = await start(t);
    const fates: unknown[] = [];
    meanwhile(async () => {
      for (const time of [end + MARGIN - 1, end + MARGIN]) {
        clock.now = time;
        fates.push(await fatesOf());
      }
    });
    assert.equal((await send()).status, 402);
    assert.deepEqual(fates, [['held'], []]);
  });

  it('is how long a payment that was settled is used', async (t) => {
    const { clock, end, nonce, send, fatesOf } = await start(t);
    settles(settled);
    assert.equal((await send()).status, 200);
    clock.now = end - 10_000;
    assert.equal((await askedFor(await send())).error, USED);
    clock.now = end + MARGIN - 1;
    assert.deepEqual(await fatesOf(nonce), ['settled']);
    clock.now += 1;
    assert.deepEqual(await fatesOf(nonce), []);
  });

  it('is not waited for where nothing was taken: that is remembered for an hour', async (t) => {
    const { clock, nonce, send, fatesOf } = await start(t);
    settles(failed);
    assert.equal((await send()).status, 402);
    clock.now += HOUR - 1;
    assert.deepEqual(await fatesOf(nonce), ['not settled']);
    clock.now += 1;
    assert.deepEqual(await fatesOf(nonce), []);
    settles(settled);
    assert.equal((await send()).status, 200);
  });
});
