import type { Static, TSchema } from 'typebox';
import type { EcdsaBackend } from '../../lib/eth/ecdsa.ts';
import type { Address, Hex } from '../../lib/eth/hex.ts';
import type { Statement } from '../../lib/eth/statements.ts';
import type { Awaitable } from '../kernel.ts';
import type { Log } from '../log.ts';
import type { SignerRole } from './variables.ts';

/** Signs for one account, wherever its key is. */
export interface OpenSigner {
  /** The account, with the EIP-55 checksum. */
  readonly address: Address;
  /**
   * @param signal aborts when no request waits for the signature any more.
   * @returns r ‖ s ‖ v, 65 bytes: v being 27 or 28, s in the lower half of the curve order (EIP-2). Whoever asks recovers the
   * address from it: a signer need not check what it hands on.
   * @throws Error whose message is fit for the log.
   */
  sign(statement: Statement, signal: AbortSignal): Awaitable<Hex>;
  /** Lets go of everything. */
  close?(): Promise<void>;
}

/** Signs in one account's name. No property and no method gives the private key away. */
export interface Signer extends OpenSigner {
  /** The implementations of the curve's arithmetic: the same bytes, at different speeds. */
  readonly backend: EcdsaBackend;
  /** At once, in the same form. The nonce is deterministic (RFC 6979). */
  sign(statement: Statement): Hex;
}

/** What a signer gets to open itself with. */
export interface SignerServices {
  readonly log: Log;
  /** Absolute path of one that is relative to the config file. */
  path(relative: string): string;
  /** Whether it is `settings.signer` or its `next`. */
  readonly role: SignerRole;
}

/** A kind of signer, as a plugin contributes it under {@link Definition.signers}. */
export interface SignerType<S extends TSchema = TSchema> {
  /**
   * Schema of the object under `settings.signer`; `type`, `timeout`, `concurrency` and `next` are left out, since they are the
   * same for all.
   */
  readonly schema: S;
  /** A key in this process signs at once: `timeout` and `concurrency` are no settings of it. Its signatures are checked like all others. */
  readonly local?: boolean;
  /**
   * Connects, logs in, asks for the address where the config does not say it.
   * @param config validated. @throws Error that says what to do, without any secret.
   */
  open(config: Static<S>, services: SignerServices): Awaitable<OpenSigner>;
}

/** Checks the types of a kind of signer and returns it. */
export function signerType<S extends TSchema>(type: SignerType<S>): SignerType {
  return type;
}

/** An open signer, and its config. */
export interface SignerInUse {
  readonly role: SignerRole;
  readonly type: string;
  readonly signer: OpenSigner;
  /** Whether it is the service's own key: it signs at once, and needs no check. */
  readonly local: boolean;
  /** Milliseconds for a signature, the wait for its turn included. */
  readonly timeout: number;
  /** Signatures that are asked for at once. */
  readonly concurrency: number;
}

/** The signers of one config. */
export interface SignerSet {
  readonly current: SignerInUse;
  readonly next?: SignerInUse | undefined;
}

/** What only the plugin that signs gets from the service. */
export interface Signing {
  /** The key of the environment. @throws Error naming the variable that is missing or invalid. */
  key(role: SignerRole): Signer;
  /** @throws Error unless the signers of this config have been opened. */
  opened(config: Readonly<Record<string, unknown>>): SignerSet;
}
