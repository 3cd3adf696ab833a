import type { Static, TSchema } from 'typebox';
import type { Awaitable } from '../../kernel/values.ts';
import type { EcdsaBackend } from '../../lib/eth/ecdsa.ts';
import type { Address, Hex } from '../../lib/eth/hex.ts';
import type { Statement } from '../../lib/eth/statements.ts';
import type { Log } from '../log.ts';
import type { SignerRole } from './variables.ts';

/** A signer of one account, wherever its key is. */
export interface OpenSigner {
  /** The account, with the EIP-55 checksum. */
  readonly address: Address;
  /**
   * Signs a statement.
   * @param signal aborts when no request waits for the signature any more.
   * @returns r ‖ s ‖ v, 65 bytes: v is 27 or 28, s in the lower half of the curve order (EIP-2). The caller recovers the address
   * from it, so a signer need not check a signature that it passes on.
   * @throws Error whose message is fit for the log.
   */
  sign(statement: Statement, signal: AbortSignal): Awaitable<Hex>;
  /** Releases connections and other resources. */
  close?(): Promise<void>;
}

/** A signer whose key is in this process. No property and no method reveals the private key. */
export interface Signer extends OpenSigner {
  /** The implementation of the curve's arithmetic. All make the same bytes, at different speeds. */
  readonly backend: EcdsaBackend;
  /** Signs synchronously, in the same form. The nonce is deterministic (RFC 6979). */
  sign(statement: Statement): Hex;
}

/** The services that a signer gets when it is opened. */
export interface SignerServices {
  readonly log: Log;
  /** Returns the absolute form of a path that is relative to the config file. */
  path(relative: string): string;
  /** Whether the signer is `settings.signer` or its `next`. */
  readonly role: SignerRole;
}

/** A kind of signer that a plugin provides under {@link Definition.signers}. */
export interface SignerType<S extends TSchema = TSchema> {
  /**
   * Schema of the object under `settings.signer`, without `type`, `timeout`, `concurrency` and `next`, which are the same for all
   * kinds.
   */
  readonly schema: S;
  /** Whether the key is in this process. The signer then has no `timeout` and `concurrency`; its signatures are still checked. */
  readonly local?: boolean;
  /**
   * Opens the signer: connects, logs in, and asks for the address if the config does not name it.
   * @param config validated. @throws Error that says what to do, without any secret.
   */
  open(config: Static<S>, services: SignerServices): Awaitable<OpenSigner>;
}

/** Checks the types of a kind of signer, and returns it. */
export function signerType<S extends TSchema>(type: SignerType<S>): SignerType {
  return type;
}

/** An open signer with its settings. */
export interface SignerInUse {
  readonly role: SignerRole;
  readonly type: string;
  readonly signer: OpenSigner;
  /** Whether its key is the environment's, in this process. It then signs synchronously, and its signatures need no check. */
  readonly local: boolean;
  /** Milliseconds for a signature, including the wait for its turn. */
  readonly timeout: number;
  /** Most signatures under way at a time. */
  readonly concurrency: number;
}

/** The signers of one config. */
export interface SignerSet {
  readonly current: SignerInUse;
  readonly next?: SignerInUse | undefined;
}

/** Access to keys and signers, which only the plugin that signs gets from the service. */
export interface Signing {
  /** Returns the signer of the environment's key. @throws Error naming the variable that is missing or invalid. */
  key(role: SignerRole): Signer;
  /** Returns the signers of a config. @throws Error unless they are open. */
  opened(config: Readonly<Record<string, unknown>>): SignerSet;
}
