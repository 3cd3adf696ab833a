/**
 * The vectors of receipts, made with ethers and `canonicalize` alone: nothing of the service has a part in them.
 */
import canonicalize from 'canonicalize';
import { AbiCoder, TypedDataEncoder, Wallet } from 'ethers';
import {
  type AnswerWithReceipt,
  answerBy,
  RECEIPT_DOMAIN,
  RECEIPT_TYPES,
  requestHash,
  type Unsigned,
} from '../support/receipts.ts';

export interface ReceiptVector {
  readonly note: string;
  /** JSON text of the parameters as a client could send them, defaults filled in. */
  readonly parameters: string;
  /** The text whose keccak256 in UTF-8 is the request hash. */
  readonly canonical: string;
  readonly requestHash: string;
  /** The body as the service sends it. */
  readonly response: AnswerWithReceipt;
  /** The EIP-712 hash, which the curve signs. */
  readonly typedDataHash: string;
}

export interface RefusedReceipt {
  readonly note: string;
  readonly reason: string;
  readonly parameters: string;
  readonly response: Readonly<Record<string, unknown>>;
}

export interface ReceiptVectors {
  readonly privateKey: string;
  readonly node: string;
  readonly domain: typeof RECEIPT_DOMAIN;
  readonly types: typeof RECEIPT_TYPES;
  readonly accepted: readonly ReceiptVector[];
  readonly refused: readonly RefusedReceipt[];
}

/** Nobody's: its digits say so. */
const wallet = new Wallet(`0x${'11'.repeat(32)}`);
const stranger = new Wallet(`0x${'22'.repeat(32)}`);
const endpointId = `0x${'a1'.repeat(32)}`;
const timestamp = 1_767_225_600;
const price = { data: AbiCoder.defaultAbiCoder().encode(['int256'], [3_000_500_000_000_000_000_000n]) };
const report = { rawData: { rows: [1, null, 'ü'], a: {} } };

const requests: readonly (readonly [note: string, parameters: string, content?: Unsigned['content'], at?: number])[] = [
  ['one parameter', '{"symbol":"ETHUSD"}'],
  ['no parameters', '{}'],
  ['several, out of order', '{"symbol":"ETHUSD","currency":"usd","Amount":"1"}'],
  ['a number is not its text', '{"id":1}'],
  ['a text is not its number', '{"id":"1"}'],
  ['numbers as ECMAScript writes them', '{"a":1.0,"b":1e3,"c":1E-7,"d":1e21,"e":-0,"f":0.1,"g":true}'],
  ['nested values of a body', '{"filter":{"b":[1,{"d":null,"c":[]}],"a":{}},"depth":3}'],
  ['text beyond ASCII', '{"größe":"\\ud83d\\ude00 €","q":"\\u0000\\"\\\\"}'],
  ['reserved parameters, of an encoding that is left open', '{"_type":"int256","_path":"$.price","_times":"1e18"}'],
  ['a reserved parameter that is a number', '{"symbol":"ETHUSD","_path":"$.price","_times":100}'],
  ['a name that is special in JavaScript', '{"__proto__":"x","symbol":"ETHUSD"}'],
  ['a raw answer', '{"symbol":"ETHUSD"}', report],
  ['a raw answer: null', '{"symbol":"ETHUSD"}', { rawData: null }],
  ['no bytes', '{"symbol":"ETHUSD"}', { data: '0x' }],
  ['a timestamp beyond 32 bits', '{"symbol":"ETHUSD"}', price, 4_294_967_296],
];

async function vector(note: string, parameters: string, content: Unsigned['content'] = price, at = timestamp) {
  const asked = JSON.parse(parameters);
  const response = await answerBy(wallet, { endpointId, timestamp: at, content, parameters: asked });
  const { requestHash: hash, dataHash } = response.receipt;
  const message = { endpointId, requestHash: hash, dataHash, timestamp: at };
  return {
    note,
    parameters,
    canonical: canonicalize({ parameters: asked }) ?? '',
    requestHash: requestHash(asked),
    response,
    typedDataHash: TypedDataEncoder.hash(RECEIPT_DOMAIN, RECEIPT_TYPES, message),
  };
}

async function refused(): Promise<RefusedReceipt[]> {
  const eth = { endpointId, timestamp, content: price, parameters: { symbol: 'ETHUSD' } };
  const parameters = '{"symbol":"ETHUSD"}';
  const answer = await answerBy(wallet, eth);
  const doge = await answerBy(wallet, { ...eth, parameters: { symbol: 'DOGEUSD' } });
  const later = await answerBy(wallet, { ...eth, timestamp: timestamp + 1 });
  const others = await answerBy(stranger, eth);
  const { receipt: _, ...bare } = answer;
  const { receipt } = answer;
  const cases: readonly (readonly [note: string, reason: string, response: object])[] = [
    ['the answer to another request', 'request', doge],
    [
      'the answer to another request, under the hash of this one',
      'receipt',
      { ...doge, receipt: { ...doge.receipt, requestHash: receipt.requestHash } },
    ],
    ['the receipt of another moment', 'receipt', { ...answer, receipt: later.receipt }],
    ['the receipt of another signer', 'receipt', { ...answer, receipt: others.receipt }],
    ['the receipt of other data', 'receipt', { ...answer, receipt: { ...receipt, dataHash: `0x${'00'.repeat(32)}` } }],
    ['the signature of the answer', 'receipt', { ...answer, receipt: { ...receipt, signature: answer.signature } }],
    ['no receipt', 'receipt-missing', bare],
    ['a short request hash', 'malformed', { ...answer, receipt: { ...receipt, requestHash: '0x12' } }],
  ];
  return cases.map(([note, reason, response]) => ({ note, reason, parameters, response: { ...response } }));
}

export async function receiptVectors(): Promise<ReceiptVectors> {
  const accepted = await Promise.all(requests.map((request) => vector(...request)));
  const { privateKey, address: node } = wallet;
  return { privateKey, node, domain: RECEIPT_DOMAIN, types: RECEIPT_TYPES, accepted, refused: await refused() };
}
