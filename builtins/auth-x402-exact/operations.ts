/** The operators' commands for standard payments; one asks the chain about payments whose outcome is unknown. */
import { isSameHex, randomId } from '../../lib/eth/hex.ts';
import { createJsonRpc, type JsonRpc, JsonRpcFailure } from '../../lib/http/json-rpc.ts';
import { httpTarget } from '../../plugins-sdk/config.ts';
import { type Hex, type HttpClient, type Services, Type } from '../../plugins-sdk/index.ts';
import type { Operation, OperationResult } from '../../plugins-sdk/observe.ts';
import {
  type Ask,
  AUTHORIZATION_USED,
  askerOf,
  blockAt,
  findMined,
  Hash,
  LogSchema,
  requireChain,
  transferred,
  word,
} from '../shared/chain.ts';
import { CLOCK_MARGIN_MS, factsOf, lifeUntil, type Mark, type Payment } from '../shared/payment-mark.ts';
import { type PaymentOperationsOptions, paymentOperations, shown } from '../shared/payment-operations.ts';
import type { Payments } from '../shared/payments.ts';
import { TYPE } from './terms.ts';

/** What the chain shows of an authorisation. */
interface Found {
  /** The outcome, if it is certain. */
  readonly end?: Pick<Mark, 'state' | 'transaction'>;
  readonly said: string;
}

/** What an operator can do about a payment, by its state. */
const CURES = {
  held: 'its request is under way, or its process has died: nothing was taken, and it ends with its authorisation',
  settling: 'it is being settled, or its process has died: payments --reconcile',
  unknown: 'the chain knows: payments --reconcile',
  settled: 'its money was taken and its answer signed: where that did not arrive, send the money back',
  'not settled': 'its money was not taken: the client can try again, or pay anew',
} as const;

const OPEN = 'its money may have been taken: ask the chain with "payments --reconcile" first';
/** Why an operator cannot free a payment, by its state. Money that was taken buys nothing more by the same authorisation. */
const KEPT: PaymentOperationsOptions['cures'] = {
  held: 'a request holds the payment: it is free at its end, or with the end of its authorisation',
  settling: OPEN,
  unknown: OPEN,
  settled: 'its money was taken, and the chain takes an authorisation once: send the money back instead',
};

/** Makes the operators' commands for standard payments. */
export function operationsOn(services: Services, payments: Payments, client: HttpClient) {
  const { log } = services;
  return {
    ...paymentOperations({ type: TYPE, payments, log, cures: CURES, refusal: ({ state }) => KEPT[state] }),
    'payments reconcile': async ({ network = '', rpc = '', dryRun }) => {
      const asked = createJsonRpc(client, httpTarget(rpc));
      const conclude = dryRun === undefined ? concluding(services, payments) : dry;
      const results: OperationResult[] = [];
      for (const payment of await payments.open()) {
        if (payment.network !== network || payment.state === 'held') continue;
        const { end, said } = await findAuthorization(asked, payment).catch(leftOpen);
        const result = end === undefined ? said : await conclude(said, payment, end);
        results.push({ ...shown(TYPE, { ...payment, ...end }), result });
      }
      return results;
    },
  } satisfies Readonly<Record<string, Operation>>;
}

const dry = (said: string) => `${said}; nothing was changed`;

/** Makes the function that records a certain outcome. It frees nothing: an authorisation that was not taken has ended. */
function concluding({ log, now }: Services, payments: Payments) {
  return async (said: string, seen: Payment, end: NonNullable<Found['end']>): Promise<string> => {
    const life = lifeUntil(Number(seen.validBefore) * 1000, now());
    if (!(await payments.replace(seen, { ...end, by: randomId() }, life)))
      return 'still unknown: a request uses it just now';
    const { transaction } = end;
    const what = transaction === undefined ? { detail: said } : { transaction };
    log.info(`the chain says that a payment was ${end.state}`, { ...factsOf(seen), ...what });
    return said;
  };
}

/** Timeout of all RPC calls about one payment, in milliseconds. */
const RPC_TIMEOUT_MS = 60_000;
const MARGIN_SECONDS = BigInt(CLOCK_MARGIN_MS / 1000);

/** Selector of `authorizationState(address,bytes32)` (EIP-3009). */
const STATE = '0xe94a0102';
/** keccak256("AuthorizationCanceled(address,bytes32)") (EIP-3009) */
const CANCELED = '0x1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81';

const shapes = {
  flag: Type.String({ pattern: '^0x0{63}[01]$' }),
  logs: Type.Array(Type.Object({ ...LogSchema.properties, transactionHash: Hash })),
};

/** The result for a payment whose node fails: its outcome stays open. */
function leftOpen(error: unknown): Found {
  if (error instanceof JsonRpcFailure) return open(error.message);
  throw error;
}

/** Finds on chain what became of an authorisation. @throws JsonRpcFailure */
async function findAuthorization(rpc: JsonRpc, record: Mark): Promise<Found> {
  const { asset, payer, nonce = '', recipient = '', amount, since, validBefore = '' } = record;
  const limits = { timeout: RPC_TIMEOUT_MS, signal: AbortSignal.timeout(RPC_TIMEOUT_MS) };
  const ask = askerOf(rpc, limits);
  const network = Number(record.network.slice('eip155:'.length));
  await requireChain(ask, network);
  const newest = await timeAt(ask, 'latest');
  const call = { to: asset, data: `${STATE}${word(payer).slice(2)}${nonce.slice(2)}` };
  const isUsed = BigInt(await ask('eth_call', [call, newest.block], shapes.flag)) === 1n;
  // By the chain's clock, which decides; the margin is longer than any reorganisation reaches back.
  if (!isUsed && newest.time > BigInt(validBefore) + MARGIN_SECONDS) return never('the authorisation has ended');
  if (!isUsed) return open('it can be taken yet: ask again 15 minutes after its end');

  // A payment uses an authorisation, and so does a payer who cancels it.
  const fromBlock = await blockSince(ask, BigInt(Math.floor(since / 1000)) - MARGIN_SECONDS, newest.block);
  const toBlock = await blockSince(ask, BigInt(validBefore) + MARGIN_SECONDS, newest.block);
  const topics = [[AUTHORIZATION_USED, CANCELED], word(payer), nonce];
  const [event] = await ask('eth_getLogs', [{ address: asset, topics, fromBlock, toBlock }], shapes.logs);
  if (event === undefined) return open('it is used, and the node does not find by which transaction');
  const transaction = event.transactionHash as Hex;
  const mined = await findMined(rpc, { network }, transaction, limits);
  if (mined === undefined) return open(`its transaction ${transaction} is no part of the chain`);
  const paid = { token: asset, from: payer, to: recipient };
  const isPaid = mined.receipt.logs.some((log) => transferred(log, paid) === BigInt(amount));
  if (isPaid) return { end: { state: 'settled', transaction }, said: 'the money was taken' };
  if (isSameHex(event.topics[0] ?? '', CANCELED)) return never('its payer has cancelled the authorisation');
  return open(`its transaction ${transaction} does not pay: look at it`);
}

/** Returns a block's number, and its time in Unix seconds. */
async function timeAt(ask: Ask, at: string): Promise<{ readonly block: string; readonly time: bigint }> {
  const block = await blockAt(ask, at);
  if (block === null) throw new JsonRpcFailure(`the node has no block ${at}`);
  return { block: block.number, time: BigInt(block.timestamp) };
}

/** Returns the first block that is not before a time in Unix seconds, or else the newest. */
async function blockSince(ask: Ask, time: bigint, newest: string): Promise<string> {
  let [low, high] = [0n, BigInt(newest)];
  while (low < high) {
    const middle = (low + high) / 2n;
    if ((await timeAt(ask, hexOf(middle))).time < time) low = middle + 1n;
    else high = middle;
  }
  return hexOf(low);
}

const hexOf = (number: bigint) => `0x${number.toString(16)}`;
const open = (why: string): Found => ({ said: `still unknown: ${why}` });
const never = (why: string): Found => ({ end: { state: 'not settled' }, said: `the money was not taken: ${why}` });
