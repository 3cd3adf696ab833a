import type { Address, Hex } from '../../lib/eth/hex.ts';

/** Width of an encrypted integer in bits: 64 for `euint64`. */
export type Bits = 8 | 16 | 32 | 64 | 128 | 256;

/** How to reach the relayer and the host chain. A worker gets it once, when it starts. */
export interface Connection {
  readonly network: 'sepolia' | 'mainnet';
  readonly rpcUrl: string;
  /** The relayer's URL, if it is not the network's own. */
  readonly relayerUrl?: string | undefined;
  readonly apiKey?: string | undefined;
  /** Address of the contract that will pass the ciphertext to the consumer, with checksum. */
  readonly verifier: Address;
}

/** One value to encrypt. */
export interface Task {
  /** The value, which fits `bits`. */
  readonly value: bigint;
  readonly bits: Bits;
  /** Address of the consumer, with checksum. */
  readonly contract: Address;
}

/** An encrypted value in the form that a contract ingests. */
export interface Ciphertext {
  /** 32 bytes. */
  readonly handle: Hex;
  /** Handles and signatures, in the layout that the host chain's verifier takes. */
  readonly inputProof: Hex;
}

/** A message to a worker. `timeout` is the time left in milliseconds; `cancel` refers to the last order to encrypt. */
export type Order =
  | { readonly kind: 'encrypt'; readonly task: Task; readonly timeout: number }
  | { readonly kind: 'cancel' };

/** A worker's one report on each order to encrypt. A worker that crashes reports a failure, whatever it is doing. */
export type Report =
  | { readonly kind: 'done'; readonly ciphertext: Ciphertext }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'cancelled' };
