import type { Address, Hex } from '../../lib/eth/hex.ts';

/** Bits of an encrypted integer: 64 for `euint64`. */
export type Bits = 8 | 16 | 32 | 64 | 128 | 256;

/** How the relayer and the host chain are reached; a worker gets it once, when it starts. */
export interface Connection {
  readonly network: 'sepolia' | 'mainnet';
  readonly rpcUrl: string;
  /** Where it is not the network's own relayer. */
  readonly relayerUrl?: string | undefined;
  readonly apiKey?: string | undefined;
  /** The contract that will hand the ciphertext to the consumer; with its checksum. */
  readonly verifier: Address;
}

/** One value to be encrypted. */
export interface Task {
  /** Within the range of `bits`. */
  readonly value: bigint;
  readonly bits: Bits;
  /** The consumer; with its checksum. */
  readonly contract: Address;
}

/** What a contract needs to take an encrypted value in. */
export interface Ciphertext {
  /** 32 bytes. */
  readonly handle: Hex;
  /** Handles and signatures, in the layout that the host chain's verifier takes. */
  readonly inputProof: Hex;
}

/** What a worker is told; `timeout` are the milliseconds that are left. To cancel means the last order to encrypt. */
export type Order =
  | { readonly kind: 'encrypt'; readonly task: Task; readonly timeout: number }
  | { readonly kind: 'cancel' };

/** How an order to encrypt ended, one for each; a worker that crashes says so by a failure, whatever it is doing. */
export type Report =
  | { readonly kind: 'done'; readonly ciphertext: Ciphertext }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'cancelled' };
