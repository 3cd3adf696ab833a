import { CanonicalJsonError, canonicalJson } from '../lib/json/canonical-json.ts';
import { type Hex, isHex, isSame } from './ethereum.ts';
import { malformed, Refusal } from './refusal.ts';

/** The signed content of an answer: encoded data, or the JSON text of a raw answer. */
type Content = { readonly kind: 'encoded'; readonly data: Hex } | { readonly kind: 'raw'; readonly json: string };

/** One node's signatures of an answer. */
export interface Voucher {
  readonly node: Hex;
  readonly signature: Hex;
  /** This node's signature of the receipt, unchecked. */
  readonly receiptSignature: unknown;
}

/** An answer of the right shape, whose signatures are not checked yet. */
export interface Answer {
  readonly endpointId: Hex;
  /** Unix seconds. */
  readonly timestamp: number;
  readonly content: Content;
  readonly main: Voucher;
  /** The answer's fields of these names, unchecked. */
  readonly receipt: unknown;
  readonly signatures: unknown;
}

/** The parts of an answer that its receipt repeats. */
export interface Statement {
  readonly endpointId: Hex;
  /** Unix seconds. */
  readonly timestamp: number;
  /** keccak256 of the data; for raw data, the hash that is signed. */
  readonly dataHash: Hex;
}

/** Returns an own field of an object. Each field is read once, so that the value that was checked is the one returned. */
export function fieldOf(object: unknown, name: string): unknown {
  if (typeof object !== 'object' || object === null || Array.isArray(object)) return undefined;
  return Object.hasOwn(object, name) ? Reflect.get(object, name) : undefined;
}

/** Checks the shape of a response. @throws Refusal */
export function readAnswer(response: unknown): Answer {
  if (typeof response !== 'object' || response === null || Array.isArray(response)) {
    throw malformed('the response is no object');
  }
  const field = (name: string): unknown => fieldOf(response, name);
  const node = field('node');
  const endpointId = field('endpointId');
  const timestamp = field('timestamp');
  const signature = field('signature');
  if (node === undefined && signature === undefined) throw malformed(unsigned(field('error'), field('status')));
  if (!isHex(node, 20)) throw malformed('node must be an address: 0x and 40 hex digits');
  if (!isHex(endpointId, 32)) throw malformed('endpointId must be 0x and 64 hex digits');
  if (typeof timestamp !== 'number' || !Number.isSafeInteger(timestamp) || timestamp < 0) {
    throw malformed('timestamp must be a number of whole Unix seconds');
  }
  if (!isHex(signature, 65)) throw malformed('signature must be 65 bytes: 0x and 130 hex digits');
  const content = readContent(field('data'), field('rawData'));
  const receipt = field('receipt');
  const main = { node, signature, receiptSignature: fieldOf(receipt, 'signature') };
  return { endpointId, timestamp, content, main, receipt, signatures: field('signatures') };
}

function unsigned(error: unknown, status: unknown): string {
  if (typeof error === 'string') return `the response is an error, not a signed answer: ${error.slice(0, 200)}`;
  if (status === 'pending' || status === 'processing') return `the request is still ${status}: there is no answer yet`;
  return 'the response has no node and no signature';
}

function readContent(data: unknown, rawData: unknown): Content {
  if (data !== undefined && rawData !== undefined) throw malformed('the response has both data and rawData');
  if (data === undefined && rawData === undefined) throw malformed('the response has neither data nor rawData');
  if (rawData !== undefined) return { kind: 'raw', json: canonicalText(rawData) };
  if (!isHex(data)) throw malformed('data must be 0x and an even number of hex digits');
  return { kind: 'encoded', data };
}

function canonicalText(rawData: unknown): string {
  try {
    return canonicalJson(rawData);
  } catch (error) {
    if (!(error instanceof CanonicalJsonError)) throw error;
    throw new Refusal('raw-data', `rawData has no canonical JSON text: ${error.message}`);
  }
}

/** Most entries of `signatures` that are examined: the service makes two, and each may cost a recovery. */
const MAX_SIGNATURES = 16;

/** Returns the entries of `signatures` that are by a node. Skips entries of the wrong shape. */
export function vouchersBy(node: Hex, signatures: unknown): readonly Voucher[] {
  if (!Array.isArray(signatures)) return [];
  return signatures.slice(0, MAX_SIGNATURES).flatMap((entry: unknown): Voucher[] => {
    const other = fieldOf(entry, 'node');
    const signature = fieldOf(entry, 'signature');
    if (!isHex(other, 20) || !isSame(other, node) || !isHex(signature, 65)) return [];
    return [{ node, signature, receiptSignature: fieldOf(entry, 'receiptSignature') }];
  });
}
