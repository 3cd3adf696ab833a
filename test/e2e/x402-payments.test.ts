/** A payment on chain buys one answer, and nothing else does. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Signature, solidityPackedKeccak256 } from 'ethers';
import { chainFor } from '../support/chain.ts';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { encoding, oneApi, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { eventually } from '../support/wait.ts';
import {
  deployToken,
  inSeconds,
  payer,
  payNative,
  prove,
  RECIPIENT,
  relay,
  termsOn,
  withResult,
} from '../support/x402.ts';

const PRICE = 1_000_000n;
const NOT_FOUND = 'Payment not found';
const NO_MATCH = 'Payment does not match';
const MISMATCH = 'Payment proof signature mismatch';
const USED = 'Payment already used';
/** The chain that is behind the times by 12 minutes. */
const LAG = 720;

describe('x402: payments on a real chain', async () => {
  const back = ['--timestamp', String(inSeconds(-LAG))];
  const [chain, late] = await Promise.all([chainFor(suite), chainFor(suite, 31338, back)]);
  const upstream = await upstreamFor(suite);
  upstream.json('/p', { price: 7 });
  const rpc = await upstreamFor(suite, { '/': relay(chain.url) });
  const alice = payer(chain, 2);
  const bob = payer(chain, 3);
  const token = await deployToken(alice);
  const other = await deployToken(alice);
  const terms = termsOn(chain, PRICE);
  const auths: Record<string, object> = {
    native: terms,
    token: { ...terms, token: token.address.toLowerCase() },
    contract: { ...terms, recipient: token.address },
    either: [{ ...terms, token: token.address }, terms],
    chains: [termsOn(late, PRICE), terms],
    relayed: { ...terms, rpc: rpc.url },
    'relayed token': { ...terms, rpc: rpc.url, token: token.address },
    late: termsOn(late, PRICE),
    hasty: { ...termsOn(late, PRICE), expiry: 60_000 },
  };
  const endpoints = Object.entries(auths).map(([name, auth]) => {
    return [name, { path: `/p?${encodeURIComponent(name)}`, auth, encoding }] as const;
  });
  const server = { rateLimit: { max: 1_000_000, x402: { max: 1_000_000 } } };
  const config = oneApi(upstream.url, Object.fromEntries(endpoints), { api: { name: 'a' }, server });
  const service = await serviceFor(suite, config);

  const send = (endpoint: string, proof: object) =>
    service.post(`a/${endpoint}`, {}, { 'X-Payment-Proof': JSON.stringify(proof) });
  const proofFor = (endpoint: string, txHash: string, by = alice, expiresAt = inSeconds(300)) =>
    prove(by, { node: TEST_ADDRESS, endpointId: service.ids[`a/${endpoint}`], txHash, expiresAt });
  /** Has the relay change the results of a method. */
  const changing = (method: string, change: Parameters<typeof withResult>[1]) => {
    rpc.on('/', relay(chain.url, withResult(method, change)));
  };
  const answered = async (endpoint: string, txHash: string, by = alice) => {
    const { data } = await verifyEncoded(await send(endpoint, await proofFor(endpoint, txHash, by)), TEST_ADDRESS);
    assert.equal(BigInt(data), 7n);
  };
  const refusedProof = async (endpoint: string, proof: object, error: string) => {
    const before = upstream.requests.length;
    await assertRefused(await send(endpoint, proof), 401, error);
    assert.equal(upstream.requests.length, before);
  };
  const refused = async (endpoint: string, txHash: string, error: string, by = alice) =>
    refusedProof(endpoint, await proofFor(endpoint, txHash, by), error);

  describe('native', () => {
    it('the amount to the recipient buys one answer, and only one', async () => {
      const paid = await payNative(alice, PRICE);
      await answered('native', paid);
      await refused('native', paid, USED);
      await refusedProof('native', await proofFor('native', paid, alice, inSeconds(500)), USED);
    });

    it('more than the amount is enough', async () => answered('native', await payNative(alice, PRICE + 1n)));

    it('one unit less does not match', async () => refused('native', await payNative(alice, PRICE - 1n), NO_MATCH));

    it('another recipient does not match', async () =>
      refused('native', await payNative(alice, PRICE, bob.address), NO_MATCH));

    it('a token payment does not match', async () =>
      refused('native', await token.send(alice, 'transfer', RECIPIENT, PRICE), NO_MATCH));

    it('a new contract has no recipient', async () => {
      const { hash } = await alice.sendTransaction({ data: '0x00', value: PRICE });
      await chain.provider.waitForTransaction(hash);
      await refused('native', hash, NO_MATCH);
    });

    it('a reverted transaction does not match, whatever it would have paid', async () => {
      const { hash, provider } = await alice.sendTransaction({ to: token.address, value: PRICE, gasLimit: 100_000 });
      const receipt = await eventually(async () => (await provider.getTransactionReceipt(hash)) ?? false);
      assert.equal(receipt.status, 0);
      await refused('contract', hash, NO_MATCH);
    });

    it('the hash in upper case is the same payment', async () => {
      const paid = await payNative(alice, PRICE);
      await answered('native', paid);
      await refused('native', `0x${paid.slice(2).toUpperCase()}`, USED);
    });
  });

  describe('ERC-20', () => {
    it('a transfer of the amount to the recipient buys one answer, and only one', async () => {
      const paid = await token.send(alice, 'transfer', RECIPIENT, PRICE);
      await answered('token', paid);
      await refused('token', paid, USED);
    });

    it('more is enough, one unit less does not match', async () => {
      await answered('token', await token.send(alice, 'transfer', RECIPIENT, PRICE + 1n));
      await refused('token', await token.send(alice, 'transfer', RECIPIENT, PRICE - 1n), NO_MATCH);
    });

    it('another recipient, another token and the native asset do not match', async () => {
      await refused('token', await token.send(alice, 'transfer', bob.address, PRICE), NO_MATCH);
      await refused('token', await other.send(alice, 'transfer', RECIPIENT, PRICE), NO_MATCH);
      await refused('token', await payNative(alice, PRICE), NO_MATCH);
    });

    it('an allowance is no transfer', async () =>
      refused('token', await token.send(alice, 'approve', RECIPIENT, PRICE), NO_MATCH));

    it('a transfer that is reverted does not match', async () => {
      const poor = payer(chain, 4);
      await refused('token', await token.send(poor, 'transfer', RECIPIENT, PRICE), NO_MATCH, poor);
    });

    it('a receipt without a status, as they were before EIP-658, does not match', async () => {
      const paid = await token.send(alice, 'transfer', RECIPIENT, PRICE);
      changing('eth_getTransactionReceipt', (receipt) => ({ ...receipt, status: undefined }));
      await refused('relayed token', paid, NO_MATCH);
    });

    it('who spends an allowance pays, for it is he who sent the transaction', async () => {
      await token.send(alice, 'approve', bob.address, PRICE);
      const paid = await token.send(bob, 'transferFrom', alice.address, RECIPIENT, PRICE);
      await refused('token', paid, MISMATCH, alice);
      await answered('token', paid, bob);
    });

    it('several transfers do not add up, and one of several that is enough is enough', async () => {
      const paid = await token.send(alice, 'transfer', RECIPIENT, PRICE);
      type Log = { data: string };
      const half = (log: Log) => ({ ...log, data: `0x${(PRICE / 2n).toString(16).padStart(64, '0')}` });
      const logs = (change: (log: Log) => object[]) =>
        changing('eth_getTransactionReceipt', (receipt) => {
          return { ...receipt, logs: (receipt.logs as Log[]).flatMap(change) };
        });
      for (const change of [(log: Log) => [half(log), half(log)], (log: Log) => [{ ...log, removed: true }]]) {
        logs(change);
        await refused('relayed token', paid, NO_MATCH);
      }
      logs((log) => [half(log), log]);
      await answered('relayed token', paid);
    });
  });

  describe('the signature', () => {
    it('of another account is a mismatch, and leaves the payment to its payer', async () => {
      const paid = await payNative(alice, PRICE);
      await refused('native', paid, MISMATCH, bob);
      await answered('native', paid);
    });

    it('for another endpoint is a mismatch, also once the payment is used', async () => {
      const paid = await payNative(alice, PRICE);
      const proof = await proofFor('native', paid);
      await refusedProof('contract', proof, MISMATCH);
      await refusedProof('native', await proofFor('token', paid), MISMATCH);
      await verifyEncoded(await send('native', proof), TEST_ADDRESS);
      await refusedProof('contract', proof, MISMATCH);
      await refused('either', paid, USED);
    });

    it('for another service or another time is a mismatch', async () => {
      const txHash = await payNative(alice, PRICE);
      const endpointId = service.ids['a/native'];
      await refusedProof('native', await prove(alice, { node: bob.address, endpointId, txHash }), MISMATCH);
      const proof = await proofFor('native', txHash);
      await refusedProof('native', { ...proof, expiresAt: proof.expiresAt + 1 }, MISMATCH);
      await answered('native', txHash);
    });

    it('of a bare digest, without the prefix of EIP-191, is a mismatch', async () => {
      const txHash = await payNative(alice, PRICE);
      const proof = await proofFor('native', txHash);
      const signed = [TEST_ADDRESS, service.ids['a/native'], proof.expiresAt];
      const digest = solidityPackedKeccak256(['address', 'bytes32', 'uint64'], signed);
      const signature = alice.signingKey.sign(digest).serialized;
      await refusedProof('native', { ...proof, signature }, MISMATCH);
    });

    it('that is the malleable twin (high s) or nobody’s is a mismatch', async () => {
      const txHash = await payNative(alice, PRICE);
      const proof = await proofFor('native', txHash);
      const { r, s, v } = Signature.from(proof.signature);
      const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
      const word = (value: bigint) => value.toString(16).padStart(64, '0');
      const twin = `${r}${word(order - BigInt(s))}${v === 27 ? '1c' : '1b'}`;
      await refusedProof('native', { ...proof, signature: twin }, MISMATCH);
      const others = [`0x${'00'.repeat(65)}`, `0x${'ff'.repeat(65)}`, `${proof.signature.slice(0, -2)}1d`];
      for (const signature of others) await refusedProof('native', { ...proof, signature }, MISMATCH);
      await verifyEncoded(await send('native', proof), TEST_ADDRESS);
    });

    it('with a bare recovery id for v (some hardware wallets) is as good', async () => {
      for (const value of [PRICE, PRICE + 1n, PRICE + 2n, PRICE + 3n]) {
        const proof = await proofFor('native', await payNative(alice, value));
        const { r, s, yParity } = Signature.from(proof.signature);
        const signature = `${r}${s.slice(2)}0${yParity}`;
        await verifyEncoded(await send('native', { ...proof, signature }), TEST_ADDRESS);
      }
    });
  });

  describe('the time', () => {
    it('a proof that has ended, or ends more than 10 minutes ahead, is refused; the payment is not', async () => {
      const paid = await payNative(alice, PRICE);
      for (const expiresAt of [0, inSeconds(-3600), inSeconds(0)])
        await refusedProof('native', await proofFor('native', paid, alice, expiresAt), 'Payment proof expired');
      for (const expiresAt of [inSeconds(3600), Number.MAX_SAFE_INTEGER]) {
        const proof = await proofFor('native', paid, alice, expiresAt);
        await refusedProof('native', proof, 'Payment proof valid for too long');
      }
      await answered('native', paid);
    });

    it('a payment is too old 10 minutes and its expiry after its block, and where it came before the process', async () => {
      const from = payer(late, 2);
      const paid = await payNative(from, PRICE);
      // 12 minutes: more than 10 and one; less than 10 and five, but the record of payments has begun with the service.
      await refused('hasty', paid, 'Payment too old', from);
      await refused('late', paid, 'Payment too old', from);
      // What passes for the chain is no concern of the service's clock.
      await late.provider.send('evm_increaseTime', [13 * 60]);
      await answered('late', await payNative(from, PRICE), from);
    });
  });

  describe('the state of the transaction', () => {
    it('unknown: not found', async () => refused('native', `0x${'ab'.repeat(32)}`, NOT_FOUND));

    it('on another chain: not found', async () =>
      refused('native', await payNative(payer(late, 2), PRICE + 5n), NOT_FOUND));

    it('pending: not found, and accepted once it is mined', async () => {
      await chain.provider.send('evm_setAutomine', [false]);
      const { hash } = await alice.sendTransaction({ to: RECIPIENT, value: PRICE });
      await refused('native', hash, NOT_FOUND);
      await chain.provider.send('evm_setAutomine', [true]);
      await chain.provider.send('evm_mine', []);
      await answered('native', hash);
    });

    it('reorganised into another block after it was used: still used', async () => {
      const nonce = await alice.getNonce();
      const populated = await alice.populateTransaction({ to: RECIPIENT, value: PRICE, nonce });
      const signed = await alice.signTransaction(populated);
      const mine = async () => {
        const { hash } = await chain.provider.broadcastTransaction(signed);
        return (await chain.provider.waitForTransaction(hash)) ?? assert.fail('not mined');
      };
      const first = await mine();
      await answered('native', first.hash);
      await chain.provider.send('anvil_reorg', [1, []]);
      await refused('native', first.hash, USED);
      const second = await mine();
      assert.equal(second.hash, first.hash);
      assert.notEqual(second.blockHash, first.blockHash);
      await refused('native', second.hash, USED);
    });

    it('in a block that is not the one of its receipt, or not part of the chain any more: not found', async () => {
      const paid = await payNative(alice, PRICE);
      const elsewhere = `0x${'12'.repeat(32)}`;
      const changes: [string, Record<string, unknown>][] = [
        ['eth_getTransactionByHash', { blockHash: elsewhere }],
        ['eth_getTransactionByHash', { blockHash: null }],
        ['eth_getTransactionReceipt', { blockHash: elsewhere }],
        ['eth_getBlockByNumber', { hash: elsewhere }],
      ];
      for (const [method, change] of changes) {
        changing(method, (result) => ({ ...result, ...change }));
        await refused('relayed', paid, NOT_FOUND);
      }
      changing('eth_getBlockByNumber', () => null);
      await refused('relayed', paid, NOT_FOUND);
      rpc.on('/', relay(chain.url));
      await answered('relayed', paid);
    });
  });

  describe('an endpoint that accepts several payments', () => {
    it('takes each of them', async () => {
      await answered('either', await payNative(alice, PRICE));
      await answered('either', await token.send(alice, 'transfer', RECIPIENT, PRICE));
      await answered('chains', await payNative(alice, PRICE));
      await answered('chains', await payNative(payer(late, 3), PRICE), payer(late, 3));
    });

    it('takes each payment once, and says what the last of them says', async () => {
      const paid = await payNative(alice, PRICE);
      await answered('either', paid);
      await refused('either', paid, USED);
      await refused('native', paid, USED);
      await refused('either', await payNative(alice, 1n), NO_MATCH);
      await refused('chains', `0x${'ab'.repeat(32)}`, NOT_FOUND);
    });
  });

  it('of many that race for one payment one wins, and the upstream is asked once', async () => {
    const paid = await payNative(alice, PRICE);
    const before = upstream.requests.length;
    const endpoint = (n: number) => (n % 2 === 0 ? 'native' : 'either');
    const proving = Array.from({ length: 20 }, (_, n) => proofFor(endpoint(n), paid, alice, inSeconds(100 + n)));
    const proofs = await Promise.all(proving);
    const answers = await Promise.all(proofs.map((proof, n) => send(endpoint(n), proof)));
    const texts = await Promise.all(answers.map(async (answer) => [answer.status, await answer.text()] as const));
    const lost = texts.filter(([status]) => status !== 200);
    assert.equal(texts.length - lost.length, 1);
    for (const [status, text] of lost) assert.deepEqual([status, text], [401, JSON.stringify({ error: USED })]);
    assert.equal(upstream.requests.length, before + 1);
  });

  it('no log shows a proof', () => {
    assert.doesNotMatch(JSON.stringify(service.logs), /signature":|0x[0-9a-f]{130}/);
  });
});
