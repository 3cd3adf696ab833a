/**
 * Verifies signed answers of the service off chain. Runs in browsers and Node.js, and needs no other part of the service.
 */
import { type Answer, readAnswer, type Voucher, vouchersBy } from './answer.ts';
import { digestOf, type Hex, hashOf, hashOfText, isSame, type Recovered, recoverSigner } from './ethereum.ts';
import { readOptions, type VerifyOptions, type Wanted } from './options.ts';
import { checkReceipt } from './receipt.ts';
import { type Reason, Refusal } from './refusal.ts';

/** Finds the signer of an EIP-191 personal signature of a 32-byte digest. */
export type Recover = (digest: Hex, signature: Hex) => Recovered;

/** Seconds that a signer's clock may be ahead of the clock by which {@link VerifyOptions.maxAge} is checked. */
export const CLOCK_SKEW = 60;

/** The result for an answer that is not accepted. */
export interface Refused {
  readonly ok: false;
  readonly reason: Reason;
  /** One sentence for a person. It may quote parts of the answer. */
  readonly message: string;
}

interface Signed {
  readonly ok: true;
  /** The signer's address, with the checksum of EIP-55. */
  readonly signer: Hex;
  /** Whether the options named a signer. */
  readonly pinned: boolean;
  /** The digest that was signed as an EIP-191 personal message: keccak256(encodePacked(endpointId, timestamp, signedData)). */
  readonly digest: Hex;
  readonly endpointId: Hex;
  /** Unix seconds at signing. */
  readonly timestamp: number;
  /** The `bytes data` of the digest, and of a delivery to a contract. */
  readonly signedData: Hex;
  /** The signature by `signer`, for a delivery to a contract. It may come from the answer's list `signatures`. */
  readonly signature: Hex;
  /** The hash of the request, as `requestHashOf` returns it; present if `parameters` were given. */
  readonly requestHash?: Hex;
  /** The signature of the receipt by `signer`, for a delivery to a contract; present if `parameters` were given. */
  readonly receiptSignature?: Hex;
}

/** An encoded answer. */
export interface VerifiedEncoded extends Signed {
  readonly kind: 'encoded';
  /** ABI-encoded values; the same as `signedData`. */
  readonly data: Hex;
}

/** A raw answer; its `signedData` is the hash of `json`. */
export interface VerifiedRaw extends Signed {
  readonly kind: 'raw';
  /** The text that was signed: the canonical JSON of `rawData`. Parse this rather than trust an object that may change. */
  readonly json: string;
}

/** The result of {@link verifyResponse}. */
export type Verification = VerifiedEncoded | VerifiedRaw | Refused;

/**
 * Checks who signed an answer, and what was signed. Takes the parsed body of a sync response, of an SSE frame, or the record
 * of a complete async request. The fields `proof`, `done`, `requestId`, `status` and `pollUrl` are not signed, and are ignored.
 * So is `receipt` without {@link VerifyOptions.parameters}.
 *
 * While its operator moves to another key, an answer may have several signatures. An entry of `signatures` by the pinned node
 * counts as the answer's own signature does, and so does the signature of the receipt in that entry.
 *
 * Never throws, whatever it is given, and makes no requests.
 *
 * What it cannot promise:
 *
 * - It does not know that the upstream returned this value: the signer could lie.
 * - Without `parameters` it does not know which parameters the request had, since only a receipt shows them. If there are no
 *   receipts, pin endpoints whose answer does not depend on parameters, or send the request yourself.
 * - It does not know whether the answer was used before. The contract that takes it has to remember that, or you have to.
 * - Without `maxAge` the answer may be of any age.
 *
 * @param recover finds the signer of a digest in place of this package's own arithmetic, for example by a native library.
 */
export function verifyResponse(
  response: unknown,
  options: VerifyOptions,
  recover: Recover = recoverSigner,
): Verification {
  try {
    return verify(response, readOptions(options), recover);
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, reason: error.reason, message: error.message };
    return { ok: false, reason: 'malformed', message: 'the response cannot be read' };
  }
}

function verify(response: unknown, wanted: Wanted, recover: Recover): Verification {
  const answer = readAnswer(response);
  const { endpointId, timestamp, content } = answer;
  const signedData = content.kind === 'encoded' ? content.data : hashOfText(content.json);
  const digest = digestOf(endpointId, timestamp, signedData);
  const check = (by: Voucher, label: string, notByIt: string) => {
    return vouched(recover(digest, by.signature), by, label, notByIt);
  };
  const voucher = voucherOf(answer, wanted.node, check);
  const { node: signer, signature } = voucher;
  const pinned = wanted.node !== null;
  const signed: Signed = { ok: true, signer, pinned, digest, endpointId, timestamp, signedData, signature };
  requireWanted(signed, wanted);
  if (wanted.requestHash === undefined) return { ...signed, ...content };
  const dataHash = content.kind === 'encoded' ? hashOf(signedData) : signedData;
  const receipt = checkReceipt(answer.receipt, voucher, { endpointId, timestamp, dataHash }, wanted.requestHash);
  return { ...signed, ...receipt, ...content };
}

/** Checks a voucher. @returns it, with the EIP-55 checksum in its node. @throws Refusal unless that node signed the answer. */
type Check = (voucher: Voucher, label: string, notByIt: string) => Voucher;

/** Returns the voucher of the answer's node or, if another node is wanted, a valid one by that node in `signatures`. */
function voucherOf({ main, signatures }: Answer, wanted: Hex | null, check: Check): Voucher {
  const changed = 'or something in the response was changed';
  const signer = check(main, 'the signature', `the signature is not by the node ${main.node}, ${changed}`);
  if (wanted === null || isSame(signer.node, wanted)) return signer;
  let refusal = new Refusal('node', `the response is signed by ${signer.node}, not by ${wanted}`);
  for (const voucher of vouchersBy(wanted, signatures)) {
    const label = `the signature of ${wanted} in signatures`;
    try {
      return check(voucher, label, `${label} is not by it, ${changed}`);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      refusal = error;
    }
  }
  throw refusal;
}

function vouched(recovered: Recovered, voucher: Voucher, label: string, notByIt: string): Voucher {
  if ('problem' in recovered) throw new Refusal('signature', `${label} is not valid: ${recovered.problem}`);
  if (!isSame(recovered.address, voucher.node)) throw new Refusal('signer', notByIt);
  return { ...voucher, node: recovered.address };
}

function requireWanted({ endpointId, timestamp }: Signed, wanted: Wanted): void {
  if (wanted.endpointId !== undefined && !isSame(endpointId, wanted.endpointId)) {
    throw new Refusal('endpoint', `the response is of endpoint ${endpointId}, not of ${wanted.endpointId}`);
  }
  if (wanted.age === undefined) return;
  const { max, now } = wanted.age;
  const age = now - timestamp;
  if (age > max) throw new Refusal('too-old', `the response is ${Math.floor(age)} seconds old, more than ${max}`);
  if (-age > CLOCK_SKEW) throw new Refusal('future', `the response is of ${Math.floor(-age)} seconds in the future`);
}
