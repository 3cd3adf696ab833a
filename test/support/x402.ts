import {
  ContractFactory,
  getBytes,
  HDNodeWallet,
  type InterfaceAbi,
  solidityPackedKeccak256,
  type TransactionResponse,
  type Wallet,
} from 'ethers';
import type { Chain } from './chain.ts';
import { type RunningService, TEST_ADDRESS } from './service.ts';
import { compile } from './solidity.ts';
import type { Handler } from './upstream.ts';
import { eventually } from './wait.ts';

/** Stands for the native asset. */
export const NATIVE = `0x${'0'.repeat(40)}`;
/** Where the tests' money goes. */
export const RECIPIENT = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';

const MNEMONIC = 'test test test test test test test test test test test junk';

/** A rich account of the chain; 0 is the service's and 1 the {@link RECIPIENT}. */
export function payer(chain: Chain, index: number): HDNodeWallet {
  return HDNodeWallet.fromPhrase(MNEMONIC, '', `m/44'/60'/0'/0/${index}`).connect(chain.provider);
}

type Account = HDNodeWallet | Wallet;

/**
 * Resolves with the transaction's hash once the node shows all of it: it mines in the background, one part is there before the
 * other, and what ethers waits for may have been by then.
 */
async function mined({ hash, provider }: TransactionResponse): Promise<string> {
  const look = async () => {
    const [receipt, transaction] = await Promise.all([
      provider.getTransactionReceipt(hash),
      provider.getTransaction(hash),
    ]);
    const block = receipt && (await provider.getBlock(receipt.blockNumber));
    return block && block.hash === receipt.blockHash && block.hash === transaction?.blockHash ? hash : undefined;
  };
  return eventually(look, `the transaction ${hash} to be mined`);
}

/** A native payment that is mined. */
export async function payNative(from: Account, value: bigint, to = RECIPIENT): Promise<string> {
  return mined(await from.sendTransaction({ to, value }));
}

export interface Token {
  readonly address: string;
  readonly abi: InterfaceAbi;
  /** Calls a function of the token; resolves with the transaction's hash once it is mined, reverted or not. */
  send(from: Account, name: string, ...args: readonly unknown[]): Promise<string>;
}

/** Deploys a token of which `owner` holds plenty. */
export async function deployToken(owner: Account): Promise<Token> {
  const { TestToken } = await compile('test/support/contracts/TestToken.sol');
  if (TestToken === undefined) throw new Error('no contract TestToken');
  const deployed = await new ContractFactory(TestToken.abi, TestToken.bytecode, owner).deploy();
  await deployed.waitForDeployment();
  const { interface: encoder } = deployed;
  const address = await deployed.getAddress();
  const send = async (from: Account, name: string, ...args: readonly unknown[]) => {
    const data = encoder.encodeFunctionData(name, args);
    // With a limit of its own the transaction is sent although it will be reverted.
    return mined(await from.sendTransaction({ to: address, data, gasLimit: 200_000 }));
  };
  await send(owner, 'mint', await owner.getAddress(), 10n ** 30n);
  return { address, abi: TestToken.abi, send };
}

/** Unix seconds. */
export function inSeconds(seconds: number): number {
  return Math.floor(Date.now() / 1000) + seconds;
}

export interface ProofInput {
  readonly node: string;
  readonly endpointId: string | undefined;
  readonly txHash: string;
  readonly expiresAt?: number;
}

/** The parsed header, signed with ethers as a client would. */
export async function prove(by: Account, { node, endpointId, txHash, expiresAt = inSeconds(300) }: ProofInput) {
  const digest = solidityPackedKeccak256(['address', 'bytes32', 'uint64'], [node, endpointId, expiresAt]);
  return { txHash, expiresAt, signature: await by.signMessage(getBytes(digest)) };
}

/** The `auth` of what costs so much on a chain, in its native asset. */
export function termsOn({ chainId: network, url: rpc }: Pick<Chain, 'chainId' | 'url'>, amount: bigint) {
  return { type: 'x402', network, rpc, token: NATIVE, amount: String(amount), recipient: RECIPIENT };
}

/** The header with which a client redeems a payment at an endpoint of a test service. */
export async function proofHeader(
  by: Account,
  { ids, node = TEST_ADDRESS }: Pick<RunningService, 'ids'> & { readonly node?: string },
  endpoint: string,
  txHash: string,
): Promise<Record<string, string>> {
  const proof = await prove(by, { node, endpointId: ids[endpoint], txHash });
  return { 'X-Payment-Proof': JSON.stringify(proof) };
}

/** A request to a node, and what may be done to the answer. */
export interface Question {
  readonly jsonrpc: string;
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

/** Stands in front of a node and passes on what `change` makes of its answers; by default just those. */
export function relay(
  url: string,
  change: (answer: object, question: Question) => unknown = (answer) => answer,
): Handler {
  return async (_req, res, { body }) => {
    const question: Question = JSON.parse(body);
    const answer = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    const changed = JSON.stringify(change((await answer.json()) as object, question));
    res.writeHead(200, { 'content-type': 'application/json' }).end(changed);
  };
}

/** Another result of one method, where it has one. */
export function withResult(
  method: string,
  change: (result: Record<string, unknown>) => unknown,
): (answer: object, question: Question) => unknown {
  return (answer, question) => {
    if (question.method !== method || !('result' in answer) || answer.result === null) return answer;
    return { ...answer, result: change(answer.result as Record<string, unknown>) };
  };
}
