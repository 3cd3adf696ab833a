/** Paid tools, by the transport of x402 for MCP: an authorisation buys one answer, and there is none where it is not settled. */

import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import type { PaymentPayload } from '@x402/core/types';
import { verifyResponse } from '../../verify/index.ts';
import { suite } from '../support/lifetime.ts';
import { callOf, firstMcpClient, mcpClient, postMcp, textIn } from '../support/mcp.ts';
import { serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { PRICE, payloadFor } from '../support/x402-exact.ts';
import { shopFor } from '../support/x402-shop.ts';

interface Result {
  readonly isError?: boolean;
  readonly structuredContent?: Record<string, unknown>;
  readonly content: unknown;
  readonly _meta?: Record<string, unknown>;
}

describe('MCP: paid tools', async () => {
  const shop = await shopFor(suite);
  const service = await serviceFor(
    suite,
    shop.config({ sync: {}, async: { mode: 'async' } }, { settings: { mcp: true } }),
  );
  const alice = await shop.market.wallet(1_000_000n);

  afterEach(() => shop.facilitator.reset());

  const balance = () => shop.market.balance(alice.address);
  const pay = async (tool: string, payment: unknown): Promise<Result> => {
    const call = callOf(tool);
    const { said } = await postMcp(service, {
      ...call,
      params: { ...call.params, _meta: { 'x402/payment': payment } },
    });
    return said.result;
  };
  const settlementIn = ({ _meta = {} }: Result) => _meta['x402/payment-response'] as Record<string, unknown>;
  /** Terms, and no data. */
  const assertTerms = (result: Result, error: string) => {
    const { isError, structuredContent } = result;
    assert.deepEqual([isError, structuredContent?.error, structuredContent?.x402Version], [true, error, 2]);
    assert.equal(textIn(result), JSON.stringify(structuredContent));
    assert.equal(JSON.stringify(result).includes('"data"'), false);
  };

  for (const connect of [mcpClient, firstMcpClient]) {
    it(`who has not paid gets the terms, as an error of the tool: ${connect.name}`, async (t) => {
      const client = await connect(t, service);
      const { tools } = await client.listTools();
      const costs = `payment by wallet (x402, version 2): ${PRICE} of ${shop.market.asset} on ${shop.market.network}`;
      assert.match(tools[0]?.description ?? '', new RegExp(`It needs ${costs.replace(/[()]/g, '\\$&')}\\.$`));
      const result = (await client.callTool({ name: 'a_sync', arguments: {} })) as Result;
      assertTerms(result, 'PAYMENT-SIGNATURE header is required');
      assert.deepEqual(result.structuredContent, await (await service.post('a/sync')).json());
    });
  }

  for (const tool of ['a_sync', 'a_async']) {
    it(`who pays gets the signed answer, and what was settled, once: ${tool}`, async () => {
      const [payload, had] = [await payloadFor(service, tool.replace('_', '/'), alice), await balance()];
      const result = await pay(tool, payload);
      assert.equal(verifyResponse(result.structuredContent, { node: TEST_ADDRESS }).ok, true);
      const { success, payer, transaction } = settlementIn(result);
      assert.deepEqual([success, payer], [true, alice.address]);
      assert.match(String(transaction), /^0x[0-9a-f]{64}$/);
      assertTerms(await pay(tool, payload), 'invalid_exact_evm_nonce_already_used');
      assert.equal(had - (await balance()), PRICE);
    });
  }

  it('of many calls with one authorisation one is answered', async () => {
    const [payload, had] = [await payloadFor(service, 'a/sync', alice), await balance()];
    const results = await Promise.all(Array.from({ length: 5 }, () => pay('a_sync', payload)));
    assert.equal(results.filter(({ isError }) => isError !== true).length, 1);
    assert.equal(had - (await balance()), PRICE);
  });

  it('a payment that is not settled buys nothing', async () => {
    const [payload, had] = [await payloadFor(service, 'a/sync', alice), await balance()];
    shop.facilitator.json('/settle', {
      ...{ success: false, errorReason: 'insufficient_funds', transaction: '' },
      ...{ network: shop.market.network, payer: alice.address },
    });
    const result = await pay('a_sync', payload);
    assertTerms(result, 'insufficient_funds');
    assert.equal(settlementIn(result).success, false);
    assert.equal(await balance(), had);
  });

  it('what is no payment is refused with the terms', async () => {
    const good: PaymentPayload = await payloadFor(service, 'a/sync', alice);
    for (const [payment, error] of [
      ['text', 'invalid_x402_version'],
      [null, 'invalid_x402_version'],
      [{ ...good, x402Version: 1 }, 'invalid_x402_version'],
      [{ ...good, accepted: { ...good.accepted, amount: '1' } }, 'invalid_payment_requirements'],
      [{ ...good, more: 'x'.repeat(9000) }, 'invalid_payload'],
    ] as const)
      assertTerms(await pay('a_sync', payment), error);
  });
});
