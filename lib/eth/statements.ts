import { dataDigest, PERSONAL_PREFIX, personalDigest } from './eip191.ts';
import { type Hex, keccak256, toBytes, toHex } from './hex.ts';

/** The JSON of `eth_signTypedData_v4` (EIP-712). */
interface TypedData {
  readonly types: Readonly<Record<string, readonly { readonly name: string; readonly type: string }[]>>;
  readonly primaryType: string;
  readonly domain: Readonly<Record<string, string>>;
  readonly message: Readonly<Record<string, string>>;
}

interface Signable {
  /** The 32 bytes that the elliptic-curve signature is over: keccak256 of the preimage. */
  readonly hash: Uint8Array;
  /** Returns the bytes before hashing, for signers that do the hashing themselves. */
  preimage(): Uint8Array;
}

/** An EIP-191 personal message (version 0x45) of 32 bytes. */
export interface PersonalStatement extends Signable {
  readonly kind: 'personal';
  readonly digest: Uint8Array;
}

/** EIP-712 typed data. */
export interface TypedStatement extends Signable {
  readonly kind: 'typed';
  data(): TypedData;
}

/** An answer or its receipt, in a form that a signer can sign. */
export type Statement = PersonalStatement | TypedStatement;

/** Makes a statement of a digest. @throws RangeError unless the digest has 32 bytes. */
export function personalStatement(digest: Uint8Array): PersonalStatement {
  const preimage = () => Buffer.concat([PERSONAL_PREFIX, digest]);
  return { kind: 'personal', digest, hash: personalDigest(digest), preimage };
}

/** The four values that a receipt binds together: endpoint, request, answer and time. */
export interface Receipt {
  readonly endpointId: Hex;
  /** keccak256 of the UTF-8 text of the canonical JSON (RFC 8785) of `{"parameters": {…}}`. */
  readonly requestHash: Hex;
  /** keccak256 of `data`; for a raw answer, the hash that is signed. */
  readonly dataHash: Hex;
  /** Unix seconds. */
  readonly timestamp: number;
}

const DOMAIN = { name: 'Signed Data Receipt', version: '1' };
const DOMAIN_FIELDS = [
  { name: 'name', type: 'string' },
  { name: 'version', type: 'string' },
];
const FIELDS = [
  { name: 'endpointId', type: 'bytes32' },
  { name: 'requestHash', type: 'bytes32' },
  { name: 'dataHash', type: 'bytes32' },
  { name: 'timestamp', type: 'uint256' },
];

const hashOfText = (text: string) => keccak256(Buffer.from(text, 'utf8'));
const encodeType = (name: string, fields: typeof FIELDS) =>
  `${name}(${fields.map((field) => `${field.type} ${field.name}`).join(',')})`;

const TYPE_HASH = hashOfText(encodeType('Receipt', FIELDS));
const DOMAIN_SEPARATOR = keccak256(
  Buffer.concat([
    hashOfText(encodeType('EIP712Domain', DOMAIN_FIELDS)),
    hashOfText(DOMAIN.name),
    hashOfText(DOMAIN.version),
  ]),
);

/**
 * Makes a receipt's EIP-712 typed data: domain `{name: 'Signed Data Receipt', version: '1'}`, type
 * `Receipt(bytes32 endpointId,bytes32 requestHash,bytes32 dataHash,uint256 timestamp)`.
 */
export function receiptStatement({ endpointId, requestHash, dataHash, timestamp }: Receipt): TypedStatement {
  const struct = Buffer.alloc(160);
  struct.set(TYPE_HASH, 0);
  struct.set(toBytes(endpointId), 32);
  struct.set(toBytes(requestHash), 64);
  struct.set(toBytes(dataHash), 96);
  struct.writeBigUInt64BE(BigInt(timestamp), 152);
  const bytes = Buffer.concat([Buffer.from('1901', 'hex'), DOMAIN_SEPARATOR, keccak256(struct)]);
  const message = { endpointId, requestHash, dataHash, timestamp: String(timestamp) };
  const types = { EIP712Domain: DOMAIN_FIELDS, Receipt: FIELDS };
  const data = () => ({ types, primaryType: 'Receipt', domain: DOMAIN, message });
  return { kind: 'typed', hash: keccak256(bytes), preimage: () => bytes, data };
}

interface Answer {
  readonly endpointId: Hex;
  /** Unix seconds. */
  readonly timestamp: number;
  readonly data: Hex;
  /** Whether `data` is the hash of the value in the response (a raw answer), not the value itself; default false. */
  readonly isHash?: boolean;
}

/** Makes the statement of an answer. @param id the endpoint's ID; bytes save a conversion. */
export function answerStatement(
  { endpointId, timestamp, data }: Answer,
  id: Uint8Array | Hex = endpointId,
): PersonalStatement {
  return personalStatement(dataDigest(id, timestamp, toBytes(data)));
}

/** Makes the receipt of an answer, with the hashes that the response shows. @param requestHash hash of the request. */
export function receiptBeside({ endpointId, timestamp, data, isHash }: Answer, requestHash: Hex) {
  const shown = { requestHash, dataHash: isHash ? data : toHex(keccak256(toBytes(data))) };
  return { name: 'receipt', shown, typed: receiptStatement({ endpointId, timestamp, ...shown }) };
}

/** Returns the 65 bytes of a signature in hex: r ‖ s ‖ v, v being 27 or 28. @param recoveryId 0 or 1. */
export function signatureHex(rs: Uint8Array, recoveryId: number): Hex {
  return `${toHex(rs)}${recoveryId === 0 ? '1b' : '1c'}`;
}
