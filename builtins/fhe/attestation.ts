import { recoverAddress, TypedDataEncoder } from 'ethers';
import { type Address, type Hex, toHex } from '../../lib/eth/hex.ts';
import type { Ciphertext } from './protocol.ts';

/** The signers who vouch for ciphertexts, and the EIP-712 domain of their signatures, as the host chain states them. */
export interface Coprocessors {
  readonly signers: readonly string[];
  readonly threshold: number;
  readonly gatewayChainId: bigint;
  /** The gateway's contract. */
  readonly verifyingContract: string;
}

/** The handle of a ciphertext, and the contracts and chain that it is bound to. */
export interface Binding {
  /** The handle, computed in this process from the ciphertext itself. */
  readonly handle: Hex;
  readonly userAddress: Address;
  readonly contractAddress: Address;
  readonly chainId: bigint;
}

const HANDLE = 32;
const SIGNATURE = 65;

const types = {
  CiphertextVerification: [
    { name: 'ctHandles', type: 'bytes32[]' },
    { name: 'userAddress', type: 'address' },
    { name: 'contractAddress', type: 'address' },
    { name: 'contractChainId', type: 'uint256' },
    { name: 'extraData', type: 'bytes' },
  ],
};

/**
 * Checks that at least the threshold of *different* coprocessors signed that they hold the ciphertext of this one
 * handle. The SDK checks that too, but counts a signer that is listed twice as two.
 *
 * @param inputProof number of handles (1 byte), number of signatures (1 byte), handles (32 bytes each), signatures
 * (65 bytes each), extra data.
 * @throws Error
 */
export function attested(
  handles: readonly Uint8Array[],
  inputProof: Uint8Array,
  binding: Binding,
  coprocessors: Coprocessors,
): Ciphertext {
  const [handle] = handles;
  if (handle === undefined || handles.length !== 1) throw new Error(`${handles.length} handles for one value`);
  const parts = split(inputProof);
  if (toHex(handle) !== binding.handle || parts.handle !== binding.handle)
    throw new Error('the handle is not that of the ciphertext');
  const { gatewayChainId: chainId, verifyingContract } = coprocessors;
  const domain = { name: 'InputVerification', version: '1', chainId, verifyingContract };
  const digest = TypedDataEncoder.hash(domain, types, {
    ctHandles: [binding.handle],
    userAddress: binding.userAddress,
    contractAddress: binding.contractAddress,
    contractChainId: binding.chainId,
    extraData: parts.extraData,
  });
  const known = new Set(coprocessors.signers.map((address) => address.toLowerCase()));
  const approving = new Set(
    parts.signatures.map((signature) => signerOf(digest, signature)).filter((signer) => known.has(signer)),
  );
  // With a threshold of zero, no signature at all would do.
  const needed = Math.max(coprocessors.threshold, 1);
  if (approving.size < needed) throw new Error(`${approving.size} different coprocessors signed, ${needed} must`);
  return { handle: binding.handle, inputProof: toHex(inputProof) };
}

function split(inputProof: Uint8Array): { handle: Hex; signatures: Uint8Array[]; extraData: Hex } {
  const [handles, count = 0] = inputProof;
  const start = 2 + HANDLE;
  const end = start + count * SIGNATURE;
  if (handles !== 1 || inputProof.length < end) throw new Error('the input proof is not one of a single handle');
  return {
    handle: toHex(inputProof.subarray(2, start)),
    signatures: Array.from({ length: count }, (_, i) =>
      inputProof.subarray(start + i * SIGNATURE, start + (i + 1) * SIGNATURE),
    ),
    extraData: toHex(inputProof.subarray(end)),
  };
}

/** Recovers a signer. @returns the lower-case address; an empty text for a signature that no contract would accept. */
function signerOf(digest: string, signature: Uint8Array): string {
  const v = signature[SIGNATURE - 1];
  // The precompile `ecrecover` accepts only these two; ethers would also accept the bare recovery id.
  if (v !== 27 && v !== 28) return '';
  try {
    return recoverAddress(digest, toHex(signature)).toLowerCase();
  } catch {
    return '';
  }
}
