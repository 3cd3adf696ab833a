/** Operators show, release and reconcile payments. */

import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { PaymentPayload } from '@x402/core/types';
import { hexlify, randomBytes } from 'ethers';
import { controlPaths } from '../../service/control.ts';
import { runCli } from '../cli/run.ts';
import { type Lifetime, suite } from '../support/lifetime.ts';
import { tableOf } from '../support/payments.ts';
import { type RunningService, serviceFor } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { retried } from '../support/wait.ts';
import { NATIVE, payer, payNative, proofHeader, termsOn } from '../support/x402.ts';
import { PRICE, paidBy, payloadFor } from '../support/x402-exact.ts';
import { type Block, settleAndRefuse, shopWithPayer } from '../support/x402-shop.ts';

const LINES = /^(?:a payment was released|the chain says)/;

describe('payments, --release and --reconcile', async () => {
  const { shop, alice } = await shopWithPayer(suite);

  const RPC =
    'option --reconcile needs --rpc <network=url>, the chain and a node of it, such as eip155:84532=https://node.example';
  const rpc = `${shop.market.network}=${shop.chain.url}`;
  const bob = () => payer(shop.chain, 2);
  const config = (settings: Block = {}) =>
    shop.config({ exact: {}, native: { auth: termsOn(shop.chain, PRICE) } }, { settings });
  const cli = async (service: Pick<RunningService, 'folder'>, ...words: string[]) => {
    const { code, stdout, stderr } = await quietly(['payments', ...words, '-c', join(service.folder, 'config.yaml')]);
    return { code, stdout: tableOf(stdout), stderr };
  };
  const quietly = (words: readonly string[]) => runCli(suite, words);
  const noError = (results: unknown) => ({ code: 0, stdout: results, stderr: '' });
  const error = (text: string) => ({ code: 1, stdout: [], stderr: `error: ${text}\n` });
  const refused = (record: object, text: string) => ({ ...error(text), stdout: [{ ...record, refused: text }] });
  const redeem = async (service: RunningService, transaction: string) =>
    service.post('a/native', {}, await proofHeader(bob(), service, 'a/native', transaction));
  const nonceOf = ({ payload }: PaymentPayload) => (payload.authorization as { nonce: string }).nonce;
  const lines = (service: RunningService) =>
    service.logs.flatMap(({ level, message, fields }) => (LINES.test(message) ? [[level, message, fields]] : []));
  const started = (t: Lifetime, settings?: Block) => serviceFor(t, config(settings));
  const native = (transaction: string, requestId: string | null) => ({
    ...{ type: 'x402', requestId, transaction, payer: bob().address, endpoint: 'a/native' },
    ...{ network: shop.market.network, asset: NATIVE, amount: String(PRICE) },
  });

  /** A service that does not know of two settlements whether they happened: the money of one is taken. */
  async function withUnknown(t: Lifetime) {
    const service = await started(t, { state: { type: 'file', path: 'state' } });
    const buy = async () => {
      const payload = await payloadFor(service, 'a/exact', alice);
      const response = await service.post('a/exact', {}, paidBy(payload));
      assert.equal(response.status, 401);
      const requestId = response.headers.get('x-request-id');
      const { network, asset } = shop.market;
      const about = { type: 'x402-exact', requestId, endpoint: 'a/exact', network, asset, amount: String(PRICE) };
      return { ...about, payer: alice.address, nonce: nonceOf(payload) };
    };
    // The facilitator takes the money, and its answer is lost.
    shop.facilitator.on('/settle', async (_req, res, { body }) => {
      await shop.facilitator.settle(JSON.parse(body));
      res.destroy();
    });
    const taken = await buy();
    shop.facilitator.on('/settle', faults.serverError());
    const lost = await buy();
    shop.facilitator.reset();
    const [used] = await shop.chain.provider.getLogs({
      ...{ address: shop.market.asset, fromBlock: 0, toBlock: 'latest' },
      topics: ['0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5', null, taken.nonce],
    });
    const transaction = used?.transactionHash;
    const settled = { ...taken, transaction, fate: 'settled' };
    const byNonce = (...results: Block[]) => results.toSorted((a, b) => (String(a.nonce) < String(b.nonce) ? -1 : 1));
    const reconcile = async (...more: string[]) => {
      const { stdout, ...rest } = await cli(service, '--reconcile', '--rpc', rpc, ...more);
      return { ...rest, stdout: byNonce(...stdout) };
    };
    return { service, taken, lost, settled, reconcile, byNonce };
  }

  describe('where the end of two settlements is not known', async () => {
    const { service, taken, lost, settled, reconcile, byNonce } = await withUnknown(suite);

    it('say of a settlement whose end is not known that its money may have been taken', async () => {
      const [socket] = controlPaths(join(service.folder, 'config.yaml'));
      assert.equal((await stat(socket)).mode & 0o777, 0o600);
      const cure = 'the chain knows: payments --reconcile';
      const mark = 'free: it can be used, unless it is too old';
      const { stdout: listed, ...rest } = await cli(service);
      assert.deepEqual(rest, { code: 0, stderr: '' });
      const unknown = [taken, lost].map((each) => ({ ...each, fate: 'unknown', cure }));
      assert.deepEqual(byNonce(...listed), byNonce(...unknown));
      assert.deepEqual(await cli(service, taken.nonce), noError([{ ...taken, fate: 'unknown', mark, cure }]));
      const ask = 'its money may have been taken: ask the chain with "payments --reconcile" first';
      const released = await cli(service, '--release', taken.nonce);
      assert.deepEqual(released, refused({ ...taken, fate: 'unknown' }, ask));
    });

    it('ask the chain, which knows what it has settled', async () => {
      const result = 'still unknown: it can be taken yet: ask again 15 minutes after its end';
      const open = { ...lost, fate: 'unknown', result };
      const tried = { ...settled, result: 'the money was taken; nothing was changed' };
      assert.deepEqual(await reconcile('--dry-run'), noError(byNonce(tried, open)));
      assert.deepEqual(lines(service), []);
      const other = await cli(service, '--reconcile', '--rpc', `eip155:1=${shop.chain.url}`);
      assert.deepEqual(other, noError([]));
      assert.deepEqual(await reconcile(), noError(byNonce({ ...settled, result: 'the money was taken' }, open)));
      const { type: _, ...fields } = taken;
      const { transaction } = settled;
      const line = ['info', 'the chain says that a payment was settled', { ...fields, transaction }];
      assert.deepEqual(lines(service), [line]);
      const back = 'its money was taken, and the chain takes an authorisation once: send the money back instead';
      assert.deepEqual(await cli(service, '--release', transaction ?? ''), refused(settled, back));
    });
  });

  it('release a payment on chain whose answer did not arrive: it buys another', async (t) => {
    const service = await started(t);
    const transaction = await payNative(bob(), PRICE);
    const answered = await redeem(service, transaction);
    assert.equal(answered.status, 200);
    assert.equal((await redeem(service, transaction)).status, 401);
    const about = native(transaction, answered.headers.get('x-request-id'));
    const cure = 'an answer was signed for it: where that did not arrive, free it with --release';
    const used = { ...about, fate: 'answered', mark: 'used', cure };
    const upper = transaction.toUpperCase().replace('0X', '0x');
    await retried(async () => assert.deepEqual(await cli(service, upper), noError([used])));

    const released = { ...about, fate: 'released', result: 'it can be used again' };
    assert.deepEqual(await cli(service, '--release', transaction), noError([released]));
    const line = ['info', 'a payment was released by an operator', { ...about, fate: 'answered' }];
    assert.deepEqual(lines(service), [line]);
    const again = { ...about, fate: 'released', result: 'it is free already: nothing was changed' };
    assert.deepEqual(await cli(service, '--release', transaction), noError([again]));
    assert.equal((await redeem(service, transaction)).status, 200);
  });

  it('release one whose requests failed as often as they may', async (t) => {
    const service = await started(t);
    const transaction = await payNative(bob(), PRICE);
    shop.upstream.on('/p', faults.serverError());
    t.after(() => shop.upstream.json('/p', { price: 7 }));
    const failed = async () => {
      const response = await redeem(service, transaction);
      assert.equal(response.status, 502);
      return native(transaction, response.headers.get('x-request-id'));
    };
    const first = await failed();
    const free = { mark: 'free: it can be used, unless it is too old', givenBack: '1 of 3 times' };
    const cure = 'the client can use it again, while it is not too old';
    assert.deepEqual(await cli(service, transaction), noError([{ ...first, fate: 'given back', ...free, cure }]));
    await failed();
    await failed();
    const last = await failed();
    const usedUp = { ...last, fate: 'used up', mark: 'used', givenBack: '3 of 3 times' };
    const free3 = 'its requests failed: find out why, then free it with --release';
    assert.deepEqual(await cli(service, transaction), noError([{ ...usedUp, cure: free3 }]));
    await cli(service, '--release', transaction);
    const next = await failed();
    assert.deepEqual(await cli(service, transaction), noError([{ ...next, fate: 'given back', ...free, cure }]));
  });

  it('say what they do not know, and what is no payment', async (t) => {
    const service = await started(t);
    const nobody = hexlify(randomBytes(32));
    const unknown = error(`nothing is known of ${nobody}: look for it in the log`);
    for (const more of [[], ['--release']]) assert.deepEqual(await cli(service, nobody, ...more), unknown);
    const file = ['-c', join(service.folder, 'config.yaml')];
    const listed = await quietly(['payments', ...file]);
    assert.deepEqual([listed.code, listed.stdout], [0, 'no payment is open\n']);
    const noHash = error('"0x12" is no transaction hash and no nonce: 0x and 64 hex digits');
    assert.deepEqual(await cli(service, '0x12'), noHash);
    assert.deepEqual(await cli(service, '--reconcile', '--rpc', 'base=https://node.example'), error(RPC));
    const reconciled = await quietly(['payments', '--reconcile', ...file, '--rpc', rpc]);
    assert.equal(reconciled.stdout, `nothing is unknown on ${shop.market.network}\n`);
  });

  it('list a payment that may have been taken, although a later request was told that it could not be', async (t) => {
    const service = await started(t, { state: { type: 'file', path: 'state' } });
    const payload = await payloadFor(service, 'a/exact', alice);
    const send = () => service.post('a/exact', {}, paidBy(payload));
    shop.facilitator.on('/settle', faults.serverError());
    assert.equal((await send()).status, 401);
    // The first settlement comes through before the second one, which finds the account empty.
    settleAndRefuse(shop);
    assert.equal((await send()).status, 402);
    shop.facilitator.reset();
    const [listed] = (await cli(service)).stdout;
    assert.deepEqual([listed?.nonce, listed?.fate], [nonceOf(payload), 'unknown']);
    assert.equal((await cli(service, '--reconcile', '--rpc', rpc)).stdout[0]?.result, 'the money was taken');
  });

  it('ask the chain, which knows that nobody can take what has ended', async (t) => {
    const { lost, settled, reconcile, byNonce } = await withUnknown(t);
    await shop.chain.provider.send('evm_increaseTime', [300 + 900 + 60]);
    await shop.chain.provider.send('evm_mine', []);
    const ended = { ...lost, fate: 'not settled' };
    const result = 'the money was not taken: the authorisation has ended';
    const money = { ...settled, result: 'the money was taken' };
    assert.deepEqual(await reconcile(), noError(byNonce(money, { ...ended, result })));
    assert.deepEqual(await reconcile(), noError([]));
  });
});
