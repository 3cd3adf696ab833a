import { paymentDigest, recoverAddress } from '../../lib/eth/eip191.ts';
import { isBytes32 } from '../../lib/eth/hex.ts';
import { jsonIn } from '../../lib/json/value.ts';
import { type Hex, isHex, Refusal } from '../../plugins-sdk/index.ts';
import type { Address } from '../../plugins-sdk/signing.ts';

/** A parsed `X-Payment-Proof` header: the transaction that pays, the proof's end, and its signature (see {@link signerOf}). */
export type PaymentProof = Readonly<ReturnType<typeof parseProof>>;

const MAX_PROOF_TEXT = 4096;

/** The longest time for which a proof may still be valid, in milliseconds. */
export const LONGEST_VALIDITY_MS = 600_000;

/**
 * Parses the header. It checks the shape only, and verifies nothing.
 * @param invalid makes the refusal of a text that is no proof; the reason is for the log.
 */
export function parseProof(text: string, invalid: (reason: string) => Refusal) {
  if (text.length > MAX_PROOF_TEXT) throw invalid('longer than any proof');
  const proof = jsonIn(text);
  if (proof === undefined) throw invalid('no JSON');
  if (typeof proof !== 'object' || proof === null) throw invalid('no object');
  const { txHash, expiresAt, signature } = proof as Readonly<Record<string, unknown>>;
  if (!isBytes32(txHash)) throw invalid('txHash is no 32-byte hex');
  if (!isHex(signature) || signature.length !== 2 + 2 * 65) throw invalid('signature is no 65-byte hex');
  if (typeof expiresAt !== 'number' || !Number.isSafeInteger(expiresAt) || expiresAt < 0)
    throw invalid('expiresAt is no unix time');
  // `expiresAt`: Unix seconds.
  return { txHash, expiresAt, signature };
}

/**
 * Checks that a proof ends in the future, and at most 10 minutes ahead.
 * @param now milliseconds of the Unix epoch.
 * @throws Refusal 401
 */
export function checkWindow({ expiresAt }: PaymentProof, now: number): void {
  const end = expiresAt * 1000;
  if (end <= now) throw new Refusal(401, 'Payment proof expired');
  if (end > now + LONGEST_VALIDITY_MS) throw new Refusal(401, 'Payment proof valid for too long');
}

/** Makes the 401 for a proof that the sender of the transaction has not signed. */
export function wrongSigner(reason: string): Refusal {
  return new Refusal(401, 'Payment proof signature mismatch', { reason });
}

/**
 * Recovers who signed the proof: keccak256(encodePacked(node, endpointId, uint64(expiresAt))) as an EIP-191 personal
 * message. A proof for another endpoint, service or time recovers to a meaningless address.
 *
 * @throws Refusal 401 if no address can be recovered, or the signature is the malleable twin with the high s (EIP-2).
 */
export function signerOf({ expiresAt, signature }: PaymentProof, node: Address, endpointId: Hex): Address {
  try {
    return recoverAddress(paymentDigest(node, endpointId, expiresAt), withUsualV(signature));
  } catch (error) {
    throw wrongSigner(error instanceof Error ? error.message : 'the signature recovers to nobody');
  }
}

/** Writes v as 27 or 28. Some hardware wallets send the bare recovery id, 0 or 1, for the same signature. */
function withUsualV(signature: Hex): Hex {
  const v = signature.slice(-2);
  return v === '00' || v === '01' ? `0x${signature.slice(2, -2)}${v === '00' ? '1b' : '1c'}` : signature;
}
