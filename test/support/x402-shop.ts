import assert from 'node:assert/strict';
import { type Chain, startChain } from './chain.ts';
import { endsWith, type Lifetime } from './lifetime.ts';
import { startUpstream, type Upstream } from './upstream.ts';
import { exactTerms, type Market, openMarket, startFacilitator, type TestFacilitator } from './x402-exact.ts';

export type Block = Readonly<Record<string, unknown>>;

/** All that a service needs to sell: a chain with a token, a facilitator, and an upstream that says 7 at `/p`. */
export interface Shop {
  readonly chain: Chain;
  readonly market: Market;
  readonly facilitator: TestFacilitator;
  readonly upstream: Upstream;
  /** The auth object that its endpoints have. */
  readonly auth: ReturnType<typeof exactTerms>;
  /** A config with one API `a`; of its endpoints the keys are the names. */
  config(endpoints: Readonly<Record<string, Block>>, more?: Block, ofApi?: Block): Block;
  close(): Promise<void>;
}

/** A busy machine takes longer than the default for a settlement. */
const PATIENT = { plugins: [{ source: 'builtin:auth-x402-exact', timeout: 600_000 }] };

export const ENCODING = { type: 'uint256', path: '$.price' };

/** Opens a shop on a chain of its own. */
export async function openShop(): Promise<Shop> {
  const chain = await startChain();
  const [market, upstream] = await Promise.all([openMarket(chain), startUpstream()]);
  const facilitator = await startFacilitator(market);
  upstream.json('/p', { price: 7 });
  const auth = exactTerms(market, facilitator.url);
  return {
    ...{ chain, market, facilitator, upstream, auth },
    config: (endpoints, more = {}, ofApi = {}) => ({
      server: { rateLimit: { max: 1_000_000, x402Exact: { max: 1_000_000 } } },
      apis: [
        {
          ...{ name: 'a', url: upstream.url, auth, ...ofApi },
          endpoints: Object.entries(endpoints).map(([name, block]) => {
            return { name, path: `/p?${encodeURIComponent(name)}`, encoding: ENCODING, ...block };
          }),
        },
      ],
      ...more,
      settings: { ...PATIENT, ...(more.settings ?? {}) },
    }),
    close: async () => {
      await Promise.all([upstream.close(), facilitator.close()]);
      await chain.stop();
    },
  };
}

/** Makes the assertion that just so much was paid by an account while work was done. */
export function costsTo(market: Market, { address }: { readonly address: string }) {
  return async (amount: bigint, work: () => Promise<unknown>) => {
    const before = await market.balance(address);
    await work();
    assert.equal(before - (await market.balance(address)), amount);
  };
}

/** Has the facilitator settle what it is asked for, and say that it did not. */
export function settleAndRefuse({ facilitator }: Shop): void {
  facilitator.on('/settle', async (_req, res, { body }) => {
    await facilitator.settle(JSON.parse(body));
    res.end(JSON.stringify({ success: false, errorReason: 'insufficient_funds', transaction: '' }));
  });
}

/** A shop that is open for the test or the suite. */
export function shopFor(lifetime: Lifetime): Promise<Shop> {
  return endsWith(lifetime, openShop());
}

/** A shop that is open for the suite, and a wallet with money for it. */
export async function shopWithPayer(lifetime: Lifetime) {
  const shop = await shopFor(lifetime);
  return { shop, alice: await shop.market.wallet(1_000_000n) };
}
