/** A payment is accepted for a time after its block, and remembered for as long. */
import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { authX402 } from '../../../builtins/auth-x402/index.ts';
import { Refusal } from '../../../plugins-sdk/index.ts';
import { StateStore } from '../../../plugins-sdk/state/state.ts';
import { MemoryArea } from '../../../plugins-sdk/state.ts';
import { type PluginHarness, testEndpoint, testPlugin } from '../../../service/testing.ts';
import { startChain } from '../../support/chain.ts';
import { NATIVE, payer, payNative, prove, RECIPIENT } from '../../support/x402.ts';

const NODE = '0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf';
const PRICE = 5n;
/** Milliseconds: 10 minutes, and the expiries of the two endpoints. */
const GRACE = 600_000;
const LONG = 900_000;
const SHORT = 60_000;
/** For which any payment is remembered: 10 minutes, an hour, and 15 minutes since clocks differ. */
const REMEMBERED = 5_100_000;

describe('x402 and time, with a clock of its own before a real chain', async () => {
  const harnesses: PluginHarness[] = [];

  const chain = await startChain();
  const alice = payer(chain, 2);

  after(async () => {
    for (const harness of harnesses) await harness.stop();
    await chain.stop();
  });

  async function setUp(capacity?: number) {
    const clock = { now: 0 };
    const method = (expiry: number) => {
      const terms = {
        network: chain.chainId,
        rpc: chain.url,
        token: NATIVE,
        amount: String(PRICE),
        recipient: RECIPIENT,
      };
      return { type: 'x402', ...terms, expiry };
    };
    const long = testEndpoint({ auth: [method(LONG)] });
    const short = testEndpoint({ id: `0x${'22'.repeat(32)}`, auth: [method(SHORT)] });
    const now = () => clock.now;
    const states = new StateStore();
    // The plugin takes what is kept under its key for the state that it would make itself.
    const keep: StateStore['keep'] = (key, version, make) => states.keep(key, version, made(make));
    const made = <T>(make: () => T) => {
      return (): T => {
        const state = make();
        return state instanceof MemoryArea && capacity ? (new MemoryArea({ capacity, now }) as T) : state;
      };
    };
    const services = { node: NODE, endpoints: [long, short], now, states: { keep } } as const;
    const harness = await testPlugin(authX402, { services });
    harnesses.push(harness);
    const ask = async (endpoint: typeof long, txHash: string, expiresAt = Math.floor(clock.now / 1000) + 100) => {
      const proof = await prove(alice, { node: NODE, endpointId: endpoint.id, txHash, expiresAt });
      const request = harness.request({ endpoint, headers: { 'X-Payment-Proof': JSON.stringify(proof) } });
      const [auth] = endpoint.auth;
      const outcome = await request.run('authenticate', { variant: 'x402', method: auth ?? assert.fail() });
      return { request, outcome: 'refused' in outcome ? outcome.refused.message : outcome };
    };
    /** Its client has what it paid for. */
    const buy = async (endpoint: typeof long, txHash: string) => {
      const { request, outcome } = await ask(endpoint, txHash);
      await request.run('concluded', { outcome: { kind: 'abandoned' } });
      return outcome;
    };
    const pay = async () => {
      const txHash = await payNative(alice, PRICE);
      const { blockNumber } = (await chain.provider.getTransactionReceipt(txHash)) ?? assert.fail();
      const { timestamp } = (await chain.provider.getBlock(blockNumber)) ?? assert.fail();
      return { txHash, minedAt: timestamp * 1000 };
    };
    return { clock, long, short, ask, buy, pay, harness };
  }
  const ACCEPTED = { value: true };

  it('a payment is accepted up to 10 minutes and the expiry after its block, and not a millisecond longer', async () => {
    const { clock, short, ask, pay } = await setUp();
    const { txHash, minedAt } = await pay();
    clock.now = minedAt + GRACE + SHORT + 1;
    assert.equal((await ask(short, txHash)).outcome, 'Payment too old');
    clock.now = minedAt + GRACE + SHORT;
    assert.deepEqual((await ask(short, txHash)).outcome, ACCEPTED);
  });

  it('it is remembered as long as any endpoint would accept it', async () => {
    const { clock, long, short, ask, buy, pay } = await setUp();
    const { txHash, minedAt } = await pay();
    clock.now = minedAt;
    assert.deepEqual(await buy(short, txHash), ACCEPTED);
    for (const age of [0, GRACE + SHORT, GRACE + SHORT + 1, GRACE + LONG - 1, GRACE + LONG]) {
      clock.now = minedAt + age;
      assert.equal((await ask(long, txHash)).outcome, 'Payment already used', `${age}`);
    }
    clock.now = minedAt + REMEMBERED;
    assert.equal((await ask(long, txHash)).outcome, 'Payment too old');
  });

  it('also when this clock is behind that of the chain', async () => {
    const { clock, long, ask, buy, pay } = await setUp();
    const { txHash, minedAt } = await pay();
    clock.now = minedAt - 3_600_000;
    assert.deepEqual(await buy(long, txHash), ACCEPTED);
    for (const age of [-3_600_000 + GRACE + LONG + 1, 0, GRACE + LONG]) {
      clock.now = minedAt + age;
      assert.equal((await ask(long, txHash)).outcome, 'Payment already used', `${age}`);
    }
    clock.now = minedAt + REMEMBERED;
    assert.equal((await ask(long, txHash)).outcome, 'Payment too old');
  });

  it('what was refunded is accepted again while it is young enough, with its count kept', async () => {
    const { clock, long, ask, pay } = await setUp();
    const { txHash, minedAt } = await pay();
    const refusal = new Refusal(502, 'API call failed');
    for (const age of [0, GRACE, GRACE + LONG - 1, GRACE + LONG]) {
      clock.now = minedAt + age;
      const { request, outcome } = await ask(long, txHash);
      assert.deepEqual(outcome, ACCEPTED);
      await request.run('concluded', { outcome: { kind: 'refused', refusal } });
    }
    assert.equal((await ask(long, txHash)).outcome, 'Payment already used');
  });

  it('who leaves gets nothing back, and neither does who was answered', async () => {
    const { clock, long, ask, pay } = await setUp();
    const { txHash, minedAt } = await pay();
    clock.now = minedAt;
    const { request, outcome } = await ask(long, txHash);
    assert.deepEqual(outcome, ACCEPTED);
    await request.run('concluded', { outcome: { kind: 'abandoned' } });
    assert.equal((await ask(long, txHash)).outcome, 'Payment already used');
  });

  it('a proof ends in the future, 10 minutes ahead at most', async () => {
    const { clock, long, ask, pay } = await setUp();
    const { txHash, minedAt } = await pay();
    clock.now = minedAt;
    const seconds = minedAt / 1000;
    assert.equal((await ask(long, txHash, seconds)).outcome, 'Payment proof expired');
    assert.equal((await ask(long, txHash, seconds + 601)).outcome, 'Payment proof valid for too long');
    clock.now = minedAt + 999;
    assert.equal((await ask(long, txHash, seconds)).outcome, 'Payment proof expired');
    clock.now = minedAt - 1;
    assert.equal((await ask(long, txHash, seconds + 600)).outcome, 'Payment proof valid for too long');
    clock.now = minedAt;
    assert.deepEqual((await ask(long, txHash, seconds + 600)).outcome, ACCEPTED);
    const next = await pay();
    clock.now = minedAt + 999;
    assert.deepEqual((await ask(long, next.txHash, seconds + 1)).outcome, ACCEPTED);
  });

  it('a full memory refuses what is new, and forgets nothing', async () => {
    // The ledger, two that were bought, and the list of the next one.
    const { clock, long, ask, buy, pay, harness } = await setUp(4);
    const [one, two, three] = [await pay(), await pay(), await pay()];
    clock.now = three.minedAt;
    assert.deepEqual(await buy(long, one.txHash), ACCEPTED);
    assert.deepEqual(await buy(long, two.txHash), ACCEPTED);
    assert.equal((await ask(long, three.txHash)).outcome, 'Payment verification unavailable');
    const messages = harness.complaints.map(({ message }) => message);
    assert.deepEqual(messages, ['no room for another key among those that are still live']);
    assert.equal((await ask(long, one.txHash)).outcome, 'Payment already used');
    assert.equal((await ask(long, two.txHash)).outcome, 'Payment already used');
  });

  it('a hold whose check failed leaves its room', async () => {
    const { clock, long, ask, pay } = await setUp(3);
    const { txHash, minedAt } = await pay();
    clock.now = minedAt;
    for (let n = 1; n < 5; n++) {
      assert.equal((await ask(long, `0x${String(n).repeat(64)}`)).outcome, 'Payment not found');
    }
    assert.deepEqual((await ask(long, txHash)).outcome, ACCEPTED);
  });
});
