import type { Handle, PKCS11 } from 'pkcs11js';
import { Semaphore } from '../../lib/bounded/semaphore.ts';
import { addressOfPublicKey } from '../../lib/eth/eip191.ts';
import { type Address, LONGEST_TIMER } from '../../plugins-sdk/index.ts';
import { type Config, type Library, nameOf, TokenFailure } from './failure.ts';
import type { Module } from './module.ts';

/** Signatures at a time: libuv has four threads, and names and files need one too. */
const SESSIONS = 3;
/** DER of the object identifier of secp256k1, 1.3.132.0.10 (SEC 2). */
const SECP256K1 = '06052b8104000a';

interface Session {
  readonly handle: Handle;
  readonly key: Handle;
}

/** What says that a session is of no use any more, while a new one may be. */
const LOST = new Set(
  ['SESSION_HANDLE_INVALID', 'SESSION_CLOSED', 'DEVICE_REMOVED', 'TOKEN_NOT_PRESENT', 'USER_NOT_LOGGED_IN']
    .concat(['KEY_HANDLE_INVALID', 'OBJECT_HANDLE_INVALID'])
    .map((name) => `CKR_${name}`),
);

/** The sessions with a token. All calls but the signature itself are made on the main thread. */
export class Token {
  readonly #library: Library;
  readonly #pkcs11: PKCS11;
  readonly #pins: Module['pins'];
  readonly #config: Config;
  readonly #idle: Session[] = [];
  readonly #slots = new Semaphore(SESSIONS);
  /** Tokens lock after a few wrong PINs, so a refused one is never sent again. */
  #refusedPin: unknown;
  #closed = false;

  constructor(library: Library, { pkcs11, pins }: Pick<Module, 'pkcs11' | 'pins'>, config: Config) {
    this.#library = library;
    this.#pkcs11 = pkcs11;
    this.#pins = pins;
    this.#config = config;
  }

  /** Looks whether the token is there; logs in nowhere. @throws Error */
  requireToken(): void {
    this.#slot();
  }

  /** Opens the first session. */
  address(): Address {
    const { CKO_PUBLIC_KEY, CKA_EC_PARAMS, CKA_EC_POINT } = this.#library;
    const session = this.#open();
    this.#idle.push(session);
    const key = this.#find(session.handle, CKO_PUBLIC_KEY, 'public');
    const wanted = [{ type: CKA_EC_PARAMS }, { type: CKA_EC_POINT }];
    const [curve, encoded] = this.#pkcs11.C_GetAttributeValue(session.handle, key, wanted);
    if (curve?.value.toString('hex') !== SECP256K1)
      throw new TokenFailure('label', 'the key is not on the curve secp256k1');
    // An OCTET STRING around the point, which some tokens leave out.
    const point = encoded?.value.length === 67 ? encoded.value.subarray(2) : encoded?.value;
    if (point?.length !== 65) throw new TokenFailure('label', 'the token does not give out the public key');
    return addressOfPublicKey(point);
  }

  /** @returns r ‖ s. */
  async sign(hash: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
    this.#requireOpen();
    const release = await this.#slots.acquire(LONGEST_TIMER, signal);
    try {
      this.#requireOpen();
      const session = this.#idle.pop() ?? this.#open();
      return await this.#signIn(session, hash).catch((error: unknown) => {
        if (!LOST.has(nameOf(error))) throw error;
        return this.#signIn(this.#open(), hash);
      });
    } finally {
      release();
    }
  }

  /** Ends its sessions once nothing is under way; the last one of the process takes the login with it. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(Array.from({ length: SESSIONS }, () => this.#slots.acquire(LONGEST_TIMER)));
    for (const session of this.#idle.splice(0)) this.#leave(session.handle);
  }

  #requireOpen(): void {
    if (this.#closed) throw new TokenFailure('module', 'the signer is closed');
  }

  async #signIn({ handle, key }: Session, hash: Uint8Array): Promise<Uint8Array> {
    try {
      this.#pkcs11.C_SignInit(handle, { mechanism: this.#library.CKM_ECDSA }, key);
      const signature = await this.#pkcs11.C_SignAsync(handle, Buffer.from(hash), Buffer.alloc(64));
      this.#idle.push({ handle, key });
      return signature;
    } catch (error) {
      this.#leave(handle);
      throw error;
    }
  }

  #open(): Session {
    const { CKF_SERIAL_SESSION, CKO_PRIVATE_KEY } = this.#library;
    const slot = this.#slot();
    const handle = this.#pkcs11.C_OpenSession(slot, CKF_SERIAL_SESSION);
    try {
      this.#login(slot, handle);
      return { handle, key: this.#find(handle, CKO_PRIVATE_KEY, 'private') };
    } catch (error) {
      this.#leave(handle);
      throw error;
    }
  }

  #slot(): Handle {
    const { token } = this.#config;
    const slots = this.#pkcs11.C_GetSlotList(true);
    const labelled = slots.map((slot) => ({ slot, label: this.#pkcs11.C_GetTokenInfo(slot).label.trimEnd() }));
    const [found, another] = labelled.filter(({ label }) => label === token);
    if (found === undefined) {
      const labels = labelled.flatMap(({ label }) => (label === '' ? [] : [JSON.stringify(label)])).slice(0, 10);
      throw new TokenFailure('token', `no token has this label, there are: ${labels.join(', ') || 'none'}`);
    }
    if (another !== undefined) throw new TokenFailure('token', 'more than one token has this label');
    return found.slot;
  }

  #login(slot: Handle, handle: Handle): void {
    if (this.#refusedPin !== undefined) throw this.#refusedPin;
    const { CKU_USER, CKF_USER_PIN_FINAL_TRY } = this.#library;
    if ((this.#pkcs11.C_GetTokenInfo(slot).flags & CKF_USER_PIN_FINAL_TRY) !== 0)
      throw new TokenFailure('pin', 'not tried, since a wrong one would lock the token now: log in with another tool');
    const { pin } = this.#config;
    const place = slot.toString('hex');
    try {
      this.#pkcs11.C_Login(handle, CKU_USER, pin);
      this.#pins.set(place, pin);
    } catch (error) {
      // A login is of the process, not of a session.
      if (nameOf(error) === 'CKR_USER_ALREADY_LOGGED_IN') {
        if (pin === (this.#pins.get(place) ?? pin)) return;
        throw new TokenFailure('pin', 'is not the one that this process is logged in with: only a restart can try it');
      }
      if (nameOf(error).startsWith('CKR_PIN_')) this.#refusedPin = error;
      throw error;
    }
  }

  #find(handle: Handle, objectClass: number, what: string): Handle {
    const { CKA_CLASS, CKA_LABEL, CKA_KEY_TYPE, CKK_EC } = this.#library;
    const { label } = this.#config;
    this.#pkcs11.C_FindObjectsInit(handle, [
      { type: CKA_CLASS, value: objectClass },
      { type: CKA_KEY_TYPE, value: CKK_EC },
      { type: CKA_LABEL, value: label },
    ]);
    const [key, another] = this.#pkcs11.C_FindObjects(handle, 2);
    this.#pkcs11.C_FindObjectsFinal(handle);
    if (key === undefined) throw new TokenFailure('label', `the token has no ${what} EC key with this label`);
    if (another !== undefined) throw new TokenFailure('label', `more than one ${what} key has this label`);
    return key;
  }

  #leave(handle: Handle): void {
    try {
      this.#pkcs11.C_CloseSession(handle);
    } catch {
      // It is gone already.
    }
  }
}
