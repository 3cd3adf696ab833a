import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { HDNodeWallet } from 'ethers';
import { authX402 } from '../../../builtins/auth-x402/index.ts';
import { PaymentMemory } from '../../../builtins/auth-x402/memory.ts';
import { RedeemedPayments } from '../../../builtins/auth-x402/redeemed.ts';
import { testEndpoint, testPlugin } from '../../../plugins-sdk/harness.ts';
import { StateStore } from '../../../plugins-sdk/state.ts';
import { type Chain, startChain } from '../../support/chain.ts';
import { NATIVE, payer, payNative, prove, RECIPIENT } from '../../support/x402.ts';

const DAY = 86_400_000;

describe('for how long payments may be accepted, by what configs before this one have remembered', () => {
  const memory = () => new PaymentMemory(new RedeemedPayments());

  it('for ever, where none was redeemed', () => {
    assert.equal(memory().lifeOf(0), Number.POSITIVE_INFINITY);
  });

  it('one as old as the last that was redeemed, or older: for as long as that was remembered', () => {
    const known = memory();
    known.redeemed(100, DAY);
    assert.deepEqual([known.lifeOf(0), known.lifeOf(DAY - 1), known.lifeOf(DAY)], [100, 100, 100]);
    assert.equal(known.lifeOf(DAY + 1), Number.POSITIVE_INFINITY);
  });

  it('an older one that is redeemed later changes nothing', () => {
    const known = memory();
    known.redeemed(100, DAY);
    known.redeemed(100, DAY - 50);
    assert.equal(known.lifeOf(DAY), 100);
  });

  it('the shortest of several counts, each for what it may have redeemed', () => {
    const known = memory();
    known.redeemed(100, DAY);
    known.redeemed(300, 2 * DAY);
    known.redeemed(200, 3 * DAY);
    assert.deepEqual(
      [DAY, DAY + 1, 2 * DAY, 3 * DAY].map((minedAt) => known.lifeOf(minedAt)),
      [100, 200, 200, 200],
    );
    assert.equal(known.lifeOf(3 * DAY + 1), Number.POSITIVE_INFINITY);
  });
});

describe('a config whose expiry is longer than that of the one before, with a clock of its own before a real chain', () => {
  const NODE = '0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf';
  const PRICE = 5n;
  const GRACE = 600_000;
  const SHORT = 60_000;
  const LONG = 900_000;
  const ACCEPTED = { value: true };
  let chain: Chain;
  let alice: HDNodeWallet;

  before(async () => {
    chain = await startChain();
    alice = payer(chain, 2);
  });
  after(() => chain.stop());

  const pay = async () => {
    const txHash = await payNative(alice, PRICE);
    const { blockNumber } = (await chain.provider.getTransactionReceipt(txHash)) ?? assert.fail();
    const { timestamp } = (await chain.provider.getBlock(blockNumber)) ?? assert.fail();
    return { txHash, minedAt: timestamp * 1000 };
  };

  /** Two configs of one service, the first with the short expiry. */
  async function configs() {
    const clock = { now: 0 };
    const plugin = async (states: StateStore, expiry: number) => {
      const { chainId: network, url: rpc } = chain;
      const auth = { type: 'x402', network, rpc, token: NATIVE, amount: String(PRICE), recipient: RECIPIENT, expiry };
      const endpoint = testEndpoint({ auth: [auth] });
      const services = { node: NODE, endpoints: [endpoint], now: () => clock.now, states } as const;
      const harness = await testPlugin(authX402, { services });
      return async (txHash: string) => {
        const expiresAt = Math.floor(clock.now / 1000) + 100;
        const proof = await prove(alice, { node: NODE, endpointId: endpoint.id, txHash, expiresAt });
        const request = harness.request({ endpoint, headers: { 'X-Payment-Proof': JSON.stringify(proof) } });
        const outcome = await request.stage('authenticate', 'x402', auth);
        return 'refused' in outcome ? outcome.refused.message : outcome;
      };
    };
    const states = new StateStore();
    const short = await plugin(states, SHORT);
    return { clock, short, long: await plugin(new StateStore(states), LONG) };
  }

  for (const [what, behind] of [
    ['', 0],
    [', even if the clock of the chain is an hour ahead', 3_600_000],
  ] as const) {
    it(`refuses what may have been redeemed and forgotten${what}`, async () => {
      const { clock, short, long } = await configs();
      const used = await pay();
      clock.now = used.minedAt - behind;
      assert.deepEqual(await short(used.txHash), ACCEPTED);
      clock.now = used.minedAt + GRACE + SHORT;
      assert.equal(await long(used.txHash), 'Payment already used');
      clock.now += 1;
      assert.equal(await long(used.txHash), 'Payment too old');
    });
  }

  it('takes what is younger than all that were redeemed, for all of its own time', async () => {
    const { clock, short, long } = await configs();
    const old = await pay();
    clock.now = old.minedAt;
    assert.deepEqual(await short(old.txHash), ACCEPTED);
    await chain.provider.send('evm_increaseTime', [100]);
    const young = await pay();
    assert.ok(young.minedAt > old.minedAt);
    clock.now = young.minedAt + GRACE + LONG;
    assert.deepEqual(await long(young.txHash), ACCEPTED);
    assert.equal(await long(young.txHash), 'Payment already used');
  });
});
