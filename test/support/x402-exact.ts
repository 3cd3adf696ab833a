import { x402Facilitator } from '@x402/core/facilitator';
import type { PaymentPayload, PaymentRequirements, SettleResponse } from '@x402/core/types';
import { toFacilitatorEvmSigner } from '@x402/evm';
import { ExactEvmScheme as ExactClient } from '@x402/evm/exact/client';
import { ExactEvmScheme as ExactFacilitator } from '@x402/evm/exact/facilitator';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { Contract, ContractFactory, hexlify, randomBytes } from 'ethers';
import { createWalletClient, defineChain, type Hex, http, publicActions } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import type { Chain } from './chain.ts';
import type { RunningService } from './service.ts';
import { compile } from './solidity.ts';
import { type Handler, startUpstream, type Upstream } from './upstream.ts';
import { payer, RECIPIENT } from './x402.ts';

/** What an answer of the tests costs, in the smallest unit of the token. */
export const PRICE = 2500n;

/** A token with EIP-3009 on a chain, and accounts of it. */
export interface Market {
  readonly chain: Chain;
  readonly network: `eip155:${number}`;
  /** Address of the token. */
  readonly asset: string;
  balance(address: string): Promise<bigint>;
  /** Moves all that the account has to nobody. */
  empty(account: Account): Promise<void>;
  /** A new account that has so much of the token, and no gas. */
  wallet(amount: bigint): Promise<Account>;
}

export type Account = ReturnType<typeof privateKeyToAccount> & { readonly key: Hex };

/** Deploys the token. */
export async function openMarket(chain: Chain): Promise<Market> {
  const { PayToken } = await compile('test/support/contracts/PayToken.sol');
  if (PayToken === undefined) throw new Error('no contract PayToken');
  const minter = payer(chain, 5);
  const deployed = await new ContractFactory(PayToken.abi, PayToken.bytecode, minter).deploy();
  await deployed.waitForDeployment();
  const asset = await deployed.getAddress();
  const token = new Contract(asset, PayToken.abi, minter);
  const call = (name: string, ...args: unknown[]) => token.getFunction(name)(...args);
  return {
    chain,
    network: `eip155:${chain.chainId}`,
    asset,
    balance: (address) => call('balanceOf', address),
    async empty({ address }) {
      const { provider } = chain;
      const data = token.interface.encodeFunctionData('transfer', [
        `0x${'de'.repeat(20)}`,
        await call('balanceOf', address),
      ]);
      await provider.send('anvil_setBalance', [address, `0x${(10n ** 18n).toString(16)}`]);
      await provider.send('anvil_impersonateAccount', [address]);
      await provider.waitForTransaction(
        await provider.send('eth_sendTransaction', [{ from: address, to: asset, data }]),
      );
    },
    async wallet(amount) {
      const key = hexlify(randomBytes(32)) as Hex;
      const account = privateKeyToAccount(key);
      await (await call('mint', account.address, amount)).wait();
      return { ...account, key };
    },
  };
}

/** The auth object that sells at {@link PRICE}. */
export function exactTerms(
  { network, asset }: Pick<Market, 'network' | 'asset'>,
  facilitator: string,
  more: object = {},
) {
  const extra = { name: 'Pay Token', version: '1' };
  const accept = { network, asset, amount: String(PRICE), payTo: RECIPIENT, extra, ...more };
  return { type: 'x402-exact', facilitator, accepts: [accept] };
}

interface Question {
  readonly paymentPayload: PaymentPayload;
  readonly paymentRequirements: PaymentRequirements;
}

/** A real facilitator behind a server that tests can have answer otherwise, path by path. */
export interface TestFacilitator extends Upstream {
  /** The true answers. */
  readonly true: Readonly<Record<'/verify' | '/settle' | '/supported', Handler>>;
  /** Answers truly again. */
  reset(): void;
  /** How often a path was asked. */
  asked(path: string): number;
  /** Settles as `/settle` does. */
  settle(question: Question): Promise<SettleResponse>;
}

/** A facilitator of the public library on a chain; it pays the gas with an account of its own. */
function facilitatorOf({ chain, network }: Market): x402Facilitator {
  const transport = http(chain.url);
  const nativeCurrency = { name: 'Ether', symbol: 'ETH', decimals: 18 };
  const local = defineChain({
    id: chain.chainId,
    name: 'local',
    nativeCurrency,
    rpcUrls: { default: { http: [chain.url] } },
  });
  const account = privateKeyToAccount(payer(chain, 6).privateKey as Hex);
  const client = createWalletClient({ account, chain: local, transport }).extend(publicActions);
  type Signer = Parameters<typeof toFacilitatorEvmSigner>[0];
  // The client would ask for a receipt once more with the next block, and there is none without a transaction.
  const waitForTransactionReceipt = async ({ hash }: { readonly hash: Hex }) => {
    await chain.provider.waitForTransaction(hash);
    return client.getTransactionReceipt({ hash });
  };
  // The types of the two libraries differ in what they leave out.
  const signer = { ...client, address: account.address, waitForTransactionReceipt } as unknown as Signer;
  // Without it no facilitator says more of a transaction that the chain would not take than that it failed.
  const scheme = new ExactFacilitator(toFacilitatorEvmSigner(signer), { simulateInSettle: true });
  return new x402Facilitator().register(network, scheme);
}

/** Starts it. */
export async function startFacilitator(market: Market): Promise<TestFacilitator> {
  const facilitator = facilitatorOf(market);
  let last: Promise<unknown> = Promise.resolve();
  /** One after the other: a transaction that fails leaves a gap before the nonces of those that were sent meanwhile. */
  const settle = ({ paymentPayload, paymentRequirements }: Question) => {
    const settled = last.then(() => facilitator.settle(paymentPayload, paymentRequirements));
    last = settled.catch(() => undefined);
    return settled;
  };
  const answering =
    (ask: (question: Question) => unknown): Handler =>
    async (_req, res, { body }) => {
      const answer = JSON.stringify(await ask(body === '' ? undefined : JSON.parse(body)));
      res.writeHead(200, { 'content-type': 'application/json' }).end(answer);
    };
  const answers = {
    '/verify': answering(({ paymentPayload, paymentRequirements }) =>
      facilitator.verify(paymentPayload, paymentRequirements),
    ),
    '/settle': answering(settle),
    '/supported': answering(() => facilitator.getSupported()),
  };
  const server = await startUpstream(answers);
  return Object.assign(server, {
    true: answers,
    reset: () => {
      for (const [path, handler] of Object.entries(answers)) server.on(path, handler);
    },
    asked: (path: string) => server.requests.filter((request) => request.path === path).length,
    settle,
  });
}

/** A client of the public library, which knows nothing of this service: `fetch` that pays when it is asked to. @param most at once. */
export function payingFetch(account: Account, { network, asset }: Market, most = PRICE): typeof globalThis.fetch {
  const client = x402Client.fromConfig({
    schemes: [{ network, client: new ExactClient(account) }],
    spendControls: { allowedAssets: [{ network, asset, maxAmountPerPayment: String(most) }] },
  });
  return wrapFetchWithPayment(fetch, client);
}

/** What is asked for, once without paying. */
export async function askedFor(response: Response) {
  const header = response.headers.get('payment-required') ?? '';
  return JSON.parse(Buffer.from(header, 'base64').toString());
}

/** What a `PAYMENT-RESPONSE` says. */
export function settledAs({ headers }: Pick<Response, 'headers'>) {
  return JSON.parse(Buffer.from(headers.get('payment-response') ?? '', 'base64').toString());
}

/** A payload as the public client library makes it for what an endpoint asks for. */
export async function payloadFor(
  service: RunningService,
  endpoint: string,
  account: Account,
  parameters?: object,
): Promise<PaymentPayload> {
  const client = x402Client.fromConfig({
    schemes: [{ network: 'eip155:*', client: new ExactClient(account) }],
    spendControls: false,
  });
  return client.createPaymentPayload(await askedFor(await service.post(endpoint, parameters)));
}

/** The header that carries it. */
export function paidBy(payload: unknown): Record<string, string> {
  return { 'PAYMENT-SIGNATURE': Buffer.from(JSON.stringify(payload)).toString('base64') };
}
