import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import { authX402 } from '../../../builtins/auth-x402/index.ts';
import type { StateStore } from '../../../plugins-sdk/state/store.ts';
import { testEndpoint, testPlugin } from '../../../service/testing.ts';
import type { Chain } from '../../support/chain.ts';
import { NATIVE, payer, payNative, prove, RECIPIENT } from '../../support/x402.ts';

type Endpoint = ReturnType<typeof testEndpoint>;

/** Milliseconds from the block of a payment in which any endpoint accepts it, beside its own expiry. */
export const GRACE = 600_000;
export const ACCEPTED = { value: true };

const NODE = '0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf';
const PRICE = 5n;

/** Payments on a real chain, to endpoints whose clock the test moves. */
export function payingOn(chain: Chain) {
  const alice = payer(chain, 2);
  const endpoint = (expiry: number, id?: `0x${string}`): Endpoint => {
    const { chainId: network, url: rpc } = chain;
    const auth = { type: 'x402', network, rpc, token: NATIVE, amount: String(PRICE), recipient: RECIPIENT, expiry };
    return testEndpoint({ ...(id && { id }), auth: [auth] });
  };
  const pay = async () => {
    const txHash = await payNative(alice, PRICE);
    const { blockNumber } = (await chain.provider.getTransactionReceipt(txHash)) ?? assert.fail();
    const { timestamp } = (await chain.provider.getBlock(blockNumber)) ?? assert.fail();
    return { txHash, minedAt: timestamp * 1000 };
  };
  /** The plugin of these endpoints. */
  const plugin = async (clock: { now: number }, endpoints: Endpoint[], states: Pick<StateStore, 'keep'>) => {
    const services = { node: NODE, endpoints, now: () => clock.now, states } as const;
    const harness = await testPlugin(authX402, { services });
    const ask = async (of: Endpoint, txHash: string, expiresAt = Math.floor(clock.now / 1000) + 100) => {
      const proof = await prove(alice, { node: NODE, endpointId: of.id, txHash, expiresAt });
      const request = harness.request({ endpoint: of, headers: { 'X-Payment-Proof': JSON.stringify(proof) } });
      const outcome = await request.run('authenticate', { variant: 'x402', method: of.auth[0] ?? assert.fail() });
      return { request, outcome: 'refused' in outcome ? outcome.refused.message : outcome };
    };
    /** Its client has what it paid for. */
    const buy = async (of: Endpoint, txHash: string) => {
      const { request, outcome } = await ask(of, txHash);
      await request.run('concluded', { outcome: { kind: 'abandoned' } });
      // The end of a payment is written in the background.
      await setImmediate();
      return outcome;
    };
    return { harness, ask, buy };
  };
  return { endpoint, pay, plugin };
}
