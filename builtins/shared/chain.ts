/** Reads a transaction from a node, checks that receipt and block belong to it, and finds its token transfers. */
import type { TSchema } from 'typebox';
import { isSameHex } from '../../lib/eth/hex.ts';
import { type JsonRpc, JsonRpcFailure, type JsonRpcLimits } from '../../lib/http/json-rpc.ts';
import { type Hex, type Static, Type } from '../../plugins-sdk/index.ts';
import { compiled } from './parameter-schema.ts';

/** keccak256("Transfer(address,address,uint256)") (ERC-20) */
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

/** keccak256("AuthorizationUsed(address,bytes32)") (EIP-3009) */
export const AUTHORIZATION_USED = '0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5';

// Shapes of the Ethereum JSON-RPC specification (ethereum/execution-apis), with only the members that are used here.
export const Quantity = Type.String({ pattern: '^0x(0|[1-9a-fA-F][0-9a-fA-F]{0,63})$' });
const Bytes = Type.String({ pattern: '^0x([0-9a-fA-F]{2})*$' });
export const Hash = Type.String({ pattern: '^0x[0-9a-fA-F]{64}$' });
const Address = Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' });
const Nullable = <S extends TSchema>(schema: S) => Type.Optional(Type.Union([schema, Type.Null()]));

const TransactionSchema = Type.Object({
  hash: Hash,
  from: Address,
  /** Null where the transaction creates a contract. */
  to: Nullable(Address),
  value: Quantity,
  /** Null while the transaction is pending. */
  blockHash: Nullable(Hash),
});

/** The schema of an event in a receipt. */
export const LogSchema = Type.Object({
  address: Address,
  topics: Type.Array(Hash),
  data: Bytes,
  removed: Type.Optional(Type.Boolean()),
});

const ReceiptSchema = Type.Object({
  transactionHash: Hash,
  blockHash: Hash,
  blockNumber: Quantity,
  /** 1: success; 0: reverted; absent in blocks before EIP-658. */
  status: Type.Optional(Quantity),
  logs: Type.Array(LogSchema),
});

const BlockSchema = Type.Object({ number: Quantity, hash: Hash, timestamp: Quantity });

/** An event that a transaction emitted. */
export type EventLog = Static<typeof LogSchema>;

const shapes = {
  transaction: Type.Union([TransactionSchema, Type.Null()]),
  receipt: Type.Union([ReceiptSchema, Type.Null()]),
  block: Type.Union([BlockSchema, Type.Null()]),
};

/**
 * Checks an answer by a compiled schema, since the payer decides how many events a receipt holds: checking 1 MiB of them takes
 * 2 ms instead of 100. Schemas are compiled at their first use, since most services never need them.
 */
function isOf<S extends TSchema>(schema: S, answer: unknown): answer is Static<S> {
  return compiled(schema)?.Check(answer) === true;
}

/** A transaction that is part of the chain. */
export interface Mined {
  readonly transaction: Static<typeof TransactionSchema>;
  readonly receipt: Static<typeof ReceiptSchema>;
  /** The block's time, in epoch milliseconds. */
  readonly minedAt: number;
}

/** Asks a node one question and checks the shape of its answer. */
export type Ask = <S extends TSchema>(method: string, params: readonly unknown[], schema: S) => Promise<Static<S>>;

/** Returns a function that asks a node. It throws JsonRpcFailure. @param timeout milliseconds for all questions together. */
export function askerOf(rpc: JsonRpc, { timeout, signal }: JsonRpcLimits): Ask {
  const deadline = performance.now() + timeout;
  return async (method, params, schema) => {
    const answer = await rpc(method, params, { timeout: Math.max(deadline - performance.now(), 0), signal });
    if (isOf(schema, answer)) return answer;
    throw new JsonRpcFailure(`the result of ${method} has a wrong shape`);
  };
}

/**
 * Checks that a node serves the expected chain: its name may resolve to another chain later, where a payment is worth nothing.
 * @throws JsonRpcFailure
 */
export async function requireChain(ask: Ask, network: number): Promise<void> {
  const id = BigInt(await ask('eth_chainId', [], Quantity));
  if (id !== BigInt(network)) throw new JsonRpcFailure(`the chain is ${id}, not ${network}`);
}

/** Reads a block by number. By hash, a node also finds blocks that are no longer part of the chain. */
export function blockAt(ask: Ask, at: string) {
  return ask('eth_getBlockByNumber', [at, false], shapes.block);
}

/**
 * Finds a mined transaction. It checks the node's chain ID each time, in parallel, which costs no time.
 *
 * @param confirmations of the second argument: blocks since the transaction, its own included. Its `network` is the chain ID.
 * @returns undefined for a transaction that is unknown, pending, without enough confirmations, or in a block outside the chain.
 * @throws JsonRpcFailure
 */
export async function findMined(
  rpc: JsonRpc,
  { network, confirmations = 1 }: { readonly network: number; readonly confirmations?: number | undefined },
  txHash: Hex,
  limits: JsonRpcLimits,
): Promise<Mined | undefined> {
  const stop = new AbortController();
  const ask = askerOf(rpc, { timeout: limits.timeout, signal: AbortSignal.any([limits.signal, stop.signal]) });
  try {
    const [, transaction, receipt] = await Promise.all([
      requireChain(ask, network),
      ask('eth_getTransactionByHash', [txHash], shapes.transaction),
      ask('eth_getTransactionReceipt', [txHash], shapes.receipt),
    ]);
    if (transaction === null || receipt === null) return undefined;
    if (!isSameHex(transaction.hash, txHash) || !isSameHex(receipt.transactionHash, txHash))
      throw new JsonRpcFailure('the answer is about another transaction');
    // Between two answers the chain may have been reorganised.
    if (!isSameHex(transaction.blockHash ?? '', receipt.blockHash)) return undefined;
    // The chain's length comes first, because the block must still be part of the chain after that.
    if (confirmations > 1) {
      const newest = await ask('eth_blockNumber', [], Quantity);
      if (BigInt(newest) - BigInt(receipt.blockNumber) < BigInt(confirmations - 1)) return undefined;
    }
    const block = await blockAt(ask, receipt.blockNumber);
    if (block === null || !isSameHex(block.hash, receipt.blockHash)) return undefined;
    return { transaction, receipt, minedAt: milliseconds(block.timestamp) };
  } finally {
    stop.abort();
  }
}

function milliseconds(timestamp: string): number {
  const time = Number(BigInt(timestamp)) * 1000;
  if (!Number.isSafeInteger(time)) throw new JsonRpcFailure('the time of the block is no time');
  return time;
}

/**
 * Returns the amount of a token (ERC-20) that an event transfers; undefined if it is no such transfer.
 * @param from the owner of the tokens; any if absent.
 */
export function transferred(
  { address, topics, data, removed }: EventLog,
  { token, from, to }: { readonly token: string; readonly from?: string; readonly to: string },
): bigint | undefined {
  const [event = '', payer = '', payee = ''] = topics;
  const isTransfer = removed !== true && isSameHex(address, token) && isSameHex(event, TRANSFER);
  if (!isTransfer || topics.length !== 3 || data.length !== 2 + 64) return undefined;
  if (!isSameHex(payee, word(to)) || (from !== undefined && !isSameHex(payer, word(from)))) return undefined;
  return BigInt(data);
}

/** Pads an address to a 32-byte word, as in events and calls. */
export function word(address: string): string {
  return `0x${address.slice(2).toLowerCase().padStart(64, '0')}`;
}
