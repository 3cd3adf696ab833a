import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { afterEach, describe, it } from 'node:test';
import type { PaymentPayload } from '@x402/core/types';
import { assertRefused, endpointUrl } from '../support/http.ts';
import { leavingRequest } from '../support/leaving-client.ts';
import { suite } from '../support/lifetime.ts';
import { serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults, type Handler, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { eventually } from '../support/wait.ts';
import { PRICE, paidBy, payloadFor, settledAs } from '../support/x402-exact.ts';
import { shopFor } from '../support/x402-shop.ts';

const UNAVAILABLE = 'Payment verification unavailable';
/** A sixth of it is for a verification, which a busy machine must manage in that time. */
const BUDGET = 3600;
const OTHER = `0x${'12'.repeat(20)}`;
const HASH = `0x${'34'.repeat(32)}`;
const LONG = 'x'.repeat(300_000);

type Cases = Readonly<Record<string, readonly [Handler, (what: string, time: number) => string]>>;

describe('x402-exact: a facilitator that is away, slow or lies, and a client that leaves', async () => {
  const [shop, elsewhere] = await Promise.all([shopFor(suite), upstreamFor(suite)]);
  const alice = await shop.market.wallet(1_000_000n);
  const settings = { plugins: [{ source: 'builtin:auth-x402-exact', timeout: BUDGET }] };
  const endpoints = { sync: {}, cached: { cache: { maxAge: 600_000 } }, held: { path: '/held' } };
  const facilitator = { url: shop.auth.facilitator, headers: { 'X-Facilitator-Key': 'geheim' } };
  const auth = { ...shop.auth, facilitator };
  const service = await serviceFor(suite, shop.config(endpoints, {}, { auth }));
  /** One with less patience. */
  const hasty = await serviceFor(suite, shop.config(endpoints, { settings }, { auth }));

  afterEach(() => shop.facilitator.reset());

  const balance = () => shop.market.balance(alice.address);
  const send = (payload: PaymentPayload, endpoint = 'a/sync', by = service) => by.post(endpoint, {}, paidBy(payload));
  const reasons = (from: number, by = service) => {
    const lines = by.logs.slice(from).filter(({ level }) => level !== 'info');
    return lines.flatMap(({ fields: { detail } }) => (typeof detail === 'string' ? [detail] : []));
  };

  const isLate = (what: string, time: number) => `${what}: no complete answer within ${time} ms`;
  const saying = (text: string) => (what: string) => `${what}: ${text}`;
  const failing = (why: string) => saying(`POST ${new URL(shop.facilitator.url).origin} failed: ${why}`);
  const tooLarge = failing('the answer is larger than 262144 bytes');
  const yes = { isValid: true, success: true, transaction: HASH, network: 'eip155:31337' };
  const common: Cases = {
    'never answers': [faults.hang(), isLate],
    'answers byte by byte': [faults.drip('x'.repeat(1000)), isLate],
    'ends the connection': [faults.reset(), failing('the connection was reset (ECONNRESET)')],
    'has a bad day': [faults.serverError(), saying('HTTP status 500')],
    'says yes with an error status': [faults.json(yes, 400), saying('HTTP status 400')],
    'wants other credentials': [faults.json({ isValid: false, success: false }, 401), saying('HTTP status 401')],
    'sends no JSON': [faults.html(), saying('the answer is no JSON')],
    'sends nothing': [faults.empty(204), saying('the answer is no JSON')],
    'sends another shape': [faults.json({ isValid: 'yes', success: 1 }), saying('the answer has a wrong shape')],
    'sends too much': [faults.text(JSON.stringify({ LONG })), tooLarge],
    'never stops': [faults.endless(), tooLarge],
  };

  const late = new Set(['never answers', 'answers byte by byte']);

  describe('when it is asked to verify', () => {
    const split = faults.json({ isValid: true, success: false }, 400);
    const cases: Cases = {
      ...common,
      'is about another payer': [
        faults.json({ isValid: true, payer: OTHER }),
        saying('the answer is about another payer'),
      ],
      'says yes with an error status, and no to what was not asked': [split, saying('HTTP status 400')],
    };
    for (const [name, [handler, reason]] of Object.entries(cases))
      it(`${name}: refused in bounded time, for nothing`, async () => {
        const by = late.has(name) ? hasty : service;
        const [payload, had, from] = [await payloadFor(by, 'a/sync', alice), await balance(), by.logs.length];
        const calls = shop.upstream.requests.length;
        shop.facilitator.on('/verify', handler);
        await assertRefused(await send(payload, 'a/sync', by), 401, UNAVAILABLE);
        assert.deepEqual(reasons(from, by), [reason('verify', BUDGET / 6)]);
        assert.equal(shop.upstream.requests.length, calls);
        shop.facilitator.reset();
        await verifyEncoded(await send(payload), TEST_ADDRESS);
        assert.equal(await balance(), had - PRICE);
      });

    it('sends it elsewhere: nobody there is asked', async () => {
      const payload = await payloadFor(service, 'a/sync', alice);
      shop.facilitator.on('/verify', faults.redirect(`${elsewhere.url}/verify`, 307));
      elsewhere.json('/verify', { isValid: true });
      const from = service.logs.length;
      await assertRefused(await send(payload), 401, UNAVAILABLE);
      assert.deepEqual(reasons(from), ['verify: HTTP status 307']);
      assert.equal(elsewhere.requests.length, 0);
    });
  });

  describe('when it is asked to settle', () => {
    const settled = { success: true, transaction: HASH, network: 'eip155:31337' };
    const failed = (errorReason: string | undefined, transaction: string, told: string) =>
      lie({ success: false, errorReason, transaction }, told);
    const FAILED = 'invalid_exact_evm_transaction_failed';
    const MISMATCH = 'invalid_exact_evm_transfer_event_mismatch';
    const UNEXPECTED = 'unexpected_settle_error';
    const lie = (answer: object, text: string) => [faults.json({ ...settled, ...answer }), saying(text)] as const;
    const used = { success: false, errorReason: 'invalid_exact_evm_nonce_already_used', transaction: '' };
    const split = faults.json({ ...settled, isValid: false }, 400);
    const cases: Cases = {
      ...common,
      'is about another payer': lie({ payer: OTHER }, 'the answer is about another payer'),
      'is about another network': lie({ network: 'eip155:1' }, 'the answer is about another network'),
      'is about another amount': lie({ amount: '1' }, 'the answer is about another amount'),
      'names no transaction': lie({ transaction: '' }, 'the answer names no transaction'),
      'says yes with an error status, and no to what was not asked': [split, saying('HTTP status 400')],
      // By whom it was used it does not say: its own connection may have asked it twice.
      'finds it used since it was verified': lie(used, 'the authorisation is used already'),
      'does not know yet': lie({ success: false, errorReason: 'settlement_pending' }, `pending as ${HASH}`),
      // After a broadcast that timed out, and for a transaction that is pending and could not be remembered.
      'calls its transaction failed': failed(FAILED, '', FAILED),
      'calls its transaction failed and names it': failed(FAILED, HASH, `${FAILED} ${HASH}`),
      'does not find the transfer in its transaction': failed(MISMATCH, HASH, `${MISMATCH} ${HASH}`),
      'finds the transaction in no state that it knows': failed(
        'invalid_transaction_state',
        '',
        'invalid_transaction_state',
      ),
      'does not say why it failed': failed(undefined, '', UNEXPECTED),
      'says why in other words': failed('nonce too low', '', UNEXPECTED),
      'says so by a code of its own': failed('settle_timed_out', '', 'settle_timed_out'),
      'blames the payment, and has sent a transaction': failed(
        'insufficient_funds',
        HASH,
        `insufficient_funds ${HASH}`,
      ),
    };
    for (const [name, [handler, reason]] of Object.entries(cases))
      it(`${name}: nothing is shown, and the operator is told`, async () => {
        const by = late.has(name) ? hasty : service;
        const payload = await payloadFor(by, 'a/sync', alice);
        const [calls, from] = [shop.upstream.requests.length, by.logs.length];
        shop.facilitator.json('/verify', { isValid: true });
        shop.facilitator.on('/settle', handler);
        const response = await send(payload, 'a/sync', by);
        assert.equal(response.headers.get('payment-response'), null);
        await assertRefused(response, 401, UNAVAILABLE);
        assert.equal(shop.upstream.requests.length, calls + 1);
        const lines = by.logs.slice(from).filter(({ level }) => level === 'error');
        const [told] = lines.filter(({ message }) => message === 'it is not known whether a payment was settled');
        const { requestId: _, said, ...details } = told?.fields ?? {};
        const { nonce } = payload.payload.authorization as { nonce: string };
        const { network, asset } = shop.market;
        const sold = { endpoint: 'a/sync', network, asset, amount: String(PRICE) };
        assert.deepEqual(details, { ...sold, payer: alice.address, nonce });
        assert.equal(said, reason('settle', (BUDGET * 2) / 3));
      });

    for (const errorReason of [
      'insufficient_funds',
      'invalid_exact_evm_signature',
      'invalid_exact_evm_transaction_simulation_failed',
      'unsupported_scheme',
    ])
      it(`refuses the payment before it sends anything: ${errorReason}`, async () => {
        const payload = await payloadFor(service, 'a/sync', alice);
        shop.facilitator.json('/settle', { success: false, errorReason, transaction: '', network: 'eip155:31337' });
        const response = await send(payload);
        assert.equal(response.status, 402);
        const { network } = shop.market;
        const told = { success: false, transaction: '', network, payer: alice.address, errorReason };
        assert.deepEqual(settledAs(response), told);
      });

    it('has settled, but its answer is lost: the same authorisation pays for nothing else', async () => {
      const [payload, had] = [await payloadFor(service, 'a/sync', alice), await balance()];
      shop.facilitator.on('/settle', async (req, _res, { body }) => {
        await shop.facilitator.settle(JSON.parse(body));
        req.socket.destroy();
      });
      await assertRefused(await send(payload), 401, UNAVAILABLE);
      assert.equal(await balance(), had - PRICE);
      shop.facilitator.reset();
      assert.equal((await send(payload)).status, 402);
      assert.equal(await balance(), had - PRICE);
    });

    it('has not settled, and is there again: the same authorisation buys the answer', async () => {
      const [payload, had] = [await payloadFor(service, 'a/sync', alice), await balance()];
      shop.facilitator.on('/settle', faults.serverError());
      await assertRefused(await send(payload), 401, UNAVAILABLE);
      shop.facilitator.reset();
      await verifyEncoded(await send(payload), TEST_ADDRESS);
      assert.equal(await balance(), had - PRICE);
    });
  });

  describe('a client that leaves', () => {
    const sendAndLeave = (payload: PaymentPayload, endpoint: string) =>
      leavingRequest(endpointUrl(service, endpoint), paidBy(payload));
    it('before there is an answer pays nothing, and can use its authorisation again', async () => {
      const [payload, had] = [await payloadFor(service, 'a/held', alice), await balance()];
      shop.upstream.on('/held', faults.hang());
      const leave = sendAndLeave(payload, 'a/held');
      await shop.upstream.untilRequested('/held');
      leave();
      await shop.upstream.untilAborted('/held');
      shop.upstream.json('/held', { price: 3 });
      // The request that was left may still be ending.
      const sell = async () => {
        const response = await send(payload, 'a/held');
        return response.status !== 402 && response;
      };
      await verifyEncoded(await eventually(sell, 'the payment to be given back'), TEST_ADDRESS);
      assert.equal(await balance(), had - PRICE);
    });

    it('during the settlement has paid, and the operator is told', async () => {
      const [payload, had] = [await payloadFor(service, 'a/sync', alice), await balance()];
      const asked = shop.facilitator.asked('/settle');
      const events = new EventEmitter();
      const left = once(events, 'left');
      shop.facilitator.on('/settle', async (...args) => {
        await left;
        return shop.facilitator.true['/settle'](...args);
      });
      const leave = sendAndLeave(payload, 'a/sync');
      await shop.facilitator.until(() => shop.facilitator.asked('/settle') > asked);
      leave();
      setTimeout(() => events.emit('left'), 100);
      const message = 'a payment was settled whose client has left';
      await eventually(() => service.logs.find((line) => line.message === message), message);
      assert.equal(await balance(), had - PRICE);
    });
  });

  it('the facilitator gets the configured headers, and no log shows them', () => {
    const sent = shop.facilitator.requests.filter(({ path }) => path !== '/');
    assert.ok(sent.length > 0);
    for (const { headers } of sent) assert.equal(headers['x-facilitator-key'], 'geheim');
    assert.doesNotMatch(JSON.stringify([service.logs, hasty.logs]), /geheim/);
  });
});
