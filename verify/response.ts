/**
 * Verifies signed answers of the service, off chain: for browsers and Node, without anything of the service itself.
 */
import { type Answer, readAnswer, type Voucher, vouchersBy } from './answer.ts';
import { digestOf, type Hex, hashOf, hashOfText, isSame, type Recovered, recoverSigner } from './ethereum.ts';
import { readOptions, type VerifyOptions, type Wanted } from './options.ts';
import { checkReceipt } from './receipt.ts';
import { type Reason, Refusal } from './refusal.ts';

/** Finds the signer of an EIP-191 personal signature of a 32-byte digest. */
export type Recover = (digest: Hex, signature: Hex) => Recovered;

/** Seconds that a signer's clock may be ahead of the one that {@link VerifyOptions.maxAge} is checked by. */
export const CLOCK_SKEW = 60;

export interface Refused {
  readonly ok: false;
  readonly reason: Reason;
  /** One sentence for a person, which may show parts of the answer. */
  readonly message: string;
}

interface Signed {
  readonly ok: true;
  /** Who signed, with the checksum of EIP-55. */
  readonly signer: Hex;
  /** Whether a signer was asked for. */
  readonly pinned: boolean;
  /** What was signed as an EIP-191 personal message: keccak256(encodePacked(endpointId, timestamp, signedData)). */
  readonly digest: Hex;
  readonly endpointId: Hex;
  /** Unix seconds at signing. */
  readonly timestamp: number;
  /** The `bytes data` of the digest, and of a delivery to a contract. */
  readonly signedData: Hex;
  /** The signature by `signer`, for a delivery to a contract: not that of the answer where its list `signatures` was needed. */
  readonly signature: Hex;
  /** What was asked, as `requestHashOf` has it; there where `parameters` were given. */
  readonly requestHash?: Hex;
  /** The signature of the receipt by `signer`, for a delivery to a contract; there where `parameters` were given. */
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

export type Verification = VerifiedEncoded | VerifiedRaw | Refused;

/**
 * Checks that an answer was signed, by whom, and what was. Takes the parsed body of a sync response, of an SSE frame, and
 * the record of a complete async request. Fields beside the signed ones (`proof`, `done`, `requestId`, `status`, `pollUrl`) are
 * not signed, and not looked at. Neither is `receipt` without {@link VerifyOptions.parameters}.
 *
 * While its operator moves to another key, an answer may have several signatures. One in the list `signatures` by the
 * pinned node counts as the answer's own does. So does the signature of the receipt that stands beside it.
 *
 * Never throws, whatever it is given, and makes no requests.
 *
 * What it cannot promise:
 *
 * - It does not know that the upstream said so: the signer could lie.
 * - Without `parameters` it does not know which parameters the request had, since only a receipt tells. Else pin endpoints whose
 *   answer does not depend on them, or send the request yourself.
 * - It does not know that nobody else has used the answer before. The contract that takes it has to remember, or you.
 * - Without `maxAge` the answer may be of any day.
 *
 * @param recover finds the signer of a digest in place of this package's own arithmetic, such as a native library.
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

/** @returns the voucher, whose node has the checksum of EIP-55. @throws Refusal unless it signed the answer. */
type Check = (voucher: Voucher, label: string, notByIt: string) => Voucher;

/** Who signed the answer: its node, or the one that is asked for, if the list of further signatures has one by it. */
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
