/** What the chain says of an authorisation to pay, for operators who ask what became of a payment. */
import { Compile } from 'typebox/compile';
import { isSameHex } from '../../lib/eth/hex.ts';
import { type JsonRpc, JsonRpcFailure } from '../../lib/http/json-rpc.ts';
import { type Hex, Type } from '../../plugins-sdk/index.ts';
import { findMined, Hash, LogSchema, Quantity, shaped, transferred, word } from '../shared/chain.ts';
import { type About, CLOCK_MARGIN_MS } from '../shared/payment-mark.ts';

export type Found =
  | { readonly kind: 'taken'; readonly transaction: Hex }
  /** It was not taken and never can be. */
  | { readonly kind: 'void'; readonly why: string }
  | { readonly kind: 'open'; readonly why: string };

/** Milliseconds for a question, and for all about one payment. */
const QUESTION = 10_000;
const ALL = 60_000;
const MARGIN_SECONDS = BigInt(CLOCK_MARGIN_MS / 1000);

/** keccak256("authorizationState(address,bytes32)"), four bytes of it, and of the two events of EIP-3009. */
const STATE = '0xe94a0102';
const USED = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5';
const CANCELED = '0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81';

const shapes = {
  block: Compile(Type.Object({ number: Quantity, timestamp: Quantity })),
  flag: Compile(Type.String({ pattern: '^0x0{63}[01]$' })),
  logs: Compile(Type.Array(Type.Object({ ...LogSchema.properties, transactionHash: Hash }))),
  quantity: Compile(Quantity),
};

/** A node, within bounds: no answer of its is taken for granted. */
class Node {
  readonly rpc: JsonRpc;
  readonly limits = { timeout: QUESTION, signal: AbortSignal.timeout(ALL) };

  constructor(rpc: JsonRpc) {
    this.rpc = rpc;
  }

  async ask<T>(method: string, params: readonly unknown[], shape: { Check(value: unknown): value is T }): Promise<T> {
    return shaped(`result of ${method}`, shape, await this.rpc.ask(method, params, this.limits));
  }

  async block(at: bigint | 'latest'): Promise<{ readonly number: bigint; readonly time: bigint }> {
    const asked = at === 'latest' ? at : hexOf(at);
    const { number, timestamp } = await this.ask('eth_getBlockByNumber', [asked, false], shapes.block);
    return { number: BigInt(number), time: BigInt(timestamp) };
  }

  /** The first block that is not before this time, in Unix seconds; the newest where none is. */
  async blockAt(time: bigint, newest: bigint): Promise<string> {
    let [low, high] = [0n, newest];
    while (low < high) {
      const middle = (low + high) / 2n;
      if ((await this.block(middle)).time < time) low = middle + 1n;
      else high = middle;
    }
    return hexOf(low);
  }
}

/** A node that fails leaves it open. */
export async function findAuthorization(rpc: JsonRpc, record: About): Promise<Found> {
  try {
    return await findIn(new Node(rpc), record);
  } catch (error) {
    if (error instanceof JsonRpcFailure) return open(error.message);
    throw error;
  }
}

async function findIn(node: Node, record: About): Promise<Found> {
  const { network, asset, payer, nonce = '', validBefore = '' } = record;
  const chain = await node.ask('eth_chainId', [], shapes.quantity);
  if (`eip155:${BigInt(chain)}` !== network) throw new JsonRpcFailure(`the chain is ${BigInt(chain)}, not ${network}`);
  const newest = await node.block('latest');
  const call = { to: asset, data: `${STATE}${word(payer).slice(2)}${nonce.slice(2)}` };
  const isUsed = BigInt(await node.ask('eth_call', [call, hexOf(newest.number)], shapes.flag)) === 1n;
  if (isUsed) return whoUsed(node, record, newest.number);
  // By the clock of the chain, which decides; later than any reorganisation reaches back.
  if (newest.time > BigInt(validBefore) + MARGIN_SECONDS) return { kind: 'void', why: 'the authorisation has ended' };
  return open('it can be taken yet: ask again 15 minutes after its end');
}

/** An authorisation is used by the payment, or by its payer who cancels it. */
async function whoUsed(node: Node, record: About, newest: bigint): Promise<Found> {
  const { network, asset, payer, nonce = '', recipient = '', amount, since, validBefore = '' } = record;
  const fromBlock = await node.blockAt(BigInt(Math.floor(since / 1000)) - MARGIN_SECONDS, newest);
  const toBlock = await node.blockAt(BigInt(validBefore) + MARGIN_SECONDS, newest);
  const topics = [[USED, CANCELED], word(payer), nonce];
  const [event] = await node.ask('eth_getLogs', [{ address: asset, topics, fromBlock, toBlock }], shapes.logs);
  if (event === undefined) return open('it is used, and the node does not find by which transaction');
  const transaction = event.transactionHash as Hex;
  const part = { network: Number(network.slice('eip155:'.length)) };
  const mined = await findMined(node.rpc, part, transaction, node.limits);
  if (mined === undefined) return open(`its transaction ${transaction} is no part of the chain`);
  const paid = { token: asset, from: payer, to: recipient };
  if (mined.receipt.logs.some((log) => transferred(log, paid) === BigInt(amount)))
    return { kind: 'taken', transaction };
  if (isSameHex(event.topics[0] ?? '', CANCELED))
    return { kind: 'void', why: 'its payer has cancelled the authorisation' };
  return open(`its transaction ${transaction} does not pay: look at it`);
}

function open(why: string): Found {
  return { kind: 'open', why };
}

function hexOf(number: bigint): string {
  return `0x${number.toString(16)}`;
}
