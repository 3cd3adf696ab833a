/** Payments outlive a reload: none is redeemed twice. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { describe, it, type TestContext } from 'node:test';
import { chainFor } from '../support/chain.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { reload } from '../support/reload.ts';
import { encoding, oneApi, type RunningService, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { payer, payNative, proofHeader, termsOn } from '../support/x402.ts';

const PRICE = 1_000_000n;
const HOUR = 3_600_000;
const USED = 'Payment already used';

describe('payments outlive a reload: none is redeemed twice', async () => {
  const chain = await chainFor(suite);
  const alice = payer(chain, 2);
  const upstream = await upstreamFor(suite, { '/p': faults.json({ price: 7 }) });

  type Block = Readonly<Record<string, unknown>>;
  const config = (auth: Block, more: Block = {}) =>
    oneApi(upstream.url, { e: { path: '/p', encoding } }, { ...more, api: { name: 'a', auth } });
  const paid = (terms: Block = {}, more: Block = {}) => config({ ...termsOn(chain, PRICE), ...terms }, more);
  const free = (more: Block = {}) => config({ type: 'free' }, more);

  const send = async (service: RunningService, txHash: string) =>
    service.post('a/e', {}, await proofHeader(alice, service, 'a/e', txHash));
  const answered = async (service: RunningService, txHash: string) => {
    assert.equal(BigInt((await verifyEncoded(await send(service, txHash), TEST_ADDRESS)).data), 7n);
  };
  const reloaded = async (service: RunningService, next: Block) =>
    assert.equal((await reload(service, next)).done, true);
  /** A service, and a payment that it has not seen. */
  const opened = async (t: TestContext) => [await serviceFor(t, paid()), await payNative(alice, PRICE)] as const;
  it('by the same config, by another price, and by a longer expiry', async (t) => {
    const [service, txHash] = await opened(t);
    await answered(service, txHash);
    for (const next of [paid(), paid({ amount: '1' }), paid({ expiry: 600_000 })]) {
      await reloaded(service, next);
      await assertRefused(await send(service, txHash), 401, USED);
    }
    await answered(service, await payNative(alice, PRICE));
  });

  it('after a config in which nothing is paid for', async (t) => {
    const [service, txHash] = await opened(t);
    await answered(service, txHash);
    await reloaded(service, free());
    assert.equal((await service.post('a/e')).status, 200);
    await reloaded(service, paid());
    await assertRefused(await send(service, txHash), 401, USED);
  });

  it('after configs that leave the plugin out, and one that failed in between', async (t) => {
    const [service, txHash] = await opened(t);
    await answered(service, txHash);
    const without = { settings: { plugins: [{ source: 'builtin:auth-x402', enabled: false }] } };
    await reloaded(service, free(without));
    await reloaded(service, free(without));
    assert.equal((await reload(service, paid({}, without))).done, false);
    await reloaded(service, paid());
    await assertRefused(await send(service, txHash), 401, USED);
  });

  it('nor is one refunded more than three times', async (t) => {
    const [service, txHash] = await opened(t);
    upstream.on('/p', faults.serverError());
    for (let attempt = 0; attempt < 4; attempt++) {
      await assertRefused(await send(service, txHash), 502, 'API call failed');
      await reloaded(service, paid());
    }
    upstream.json('/p', { price: 7 });
    await assertRefused(await send(service, txHash), 401, USED);
  });

  it('one whose request is under way is taken', async (t) => {
    const [service, txHash] = await opened(t);
    const events = new EventEmitter();
    const released = once(events, 'release');
    upstream.requests.length = 0;
    upstream.on('/p', async (...args) => {
      await released;
      return faults.json({ price: 7 })(...args);
    });
    const first = send(service, txHash);
    await upstream.until(() => upstream.requests.length === 1);
    await reloaded(service, paid());
    await assertRefused(await send(service, txHash), 401, USED);
    events.emit('release');
    assert.equal((await first).status, 200);
    await assertRefused(await send(service, txHash), 401, USED);
    upstream.json('/p', { price: 7 });
  });

  it('the bucket of proofs stays as empty as it was, unless its limits are others', async (t) => {
    const limits = (max: number) => ({ server: { rateLimit: { max: 1_000_000, x402: { max, window: HOUR } } } });
    const service = await serviceFor(t, paid({}, limits(1)));
    const limited = async () => {
      const tooMany = 'Too many x402 verification attempts — slow down';
      await assertRefused(await send(service, `0x${'12'.repeat(32)}`), 401, tooMany);
    };
    await assertRefused(await send(service, `0x${'12'.repeat(32)}`), 401, 'Payment not found');
    await limited();
    await reloaded(service, paid({ amount: '5' }, limits(1)));
    await limited();
    await reloaded(service, paid({}, limits(2)));
    await answered(service, await payNative(alice, PRICE));
  });
});
