import type { LoadedConfig } from '../config/index.ts';
import { errorForLog } from '../kernel/refusal.ts';
import type { Address } from '../lib/eth/hex.ts';
import { LATE, withTimeout } from '../lib/time.ts';
import { signerKey } from '../plugins-sdk/keys.ts';
import type { Log } from '../plugins-sdk/log.ts';
import { isRecord } from '../plugins-sdk/schema/path.ts';
import { createSigner, signerFromEnvironment } from '../plugins-sdk/signing/local-key.ts';
import type {
  Signer,
  SignerInUse,
  SignerServices,
  SignerSet,
  SignerType,
  Signing,
} from '../plugins-sdk/signing/signers.ts';
import { type Environment, MissingKey, type SignerRole, VARIABLES } from '../plugins-sdk/signing/variables.ts';
import { signerAddressOf } from './assemble.ts';

/** The type of the signer where a config names none: the key from the environment. */
const ENVIRONMENT = 'environment';
/** Defaults of the config: milliseconds for a signature, and signatures at the same time. */
const SIGNATURE_TIMEOUT_MS = 5000;
const CONCURRENCY = 16;
/** Milliseconds that a signer has to open, and to close. */
const OPEN_TIMEOUT_MS = 30_000;
const CLOSE_TIMEOUT_MS = 5000;

type Config = LoadedConfig['config'];

/** The signers of all configs in use. A signer that two configs share is opened once. */
export class Signers implements Signing {
  readonly #env: Environment;
  readonly #log: Log;
  readonly #keys = new Map<SignerRole, Signer>();
  /** The open signers by config; configs that name the same signers share a set. */
  readonly #sets = new Map<Config, SignerSet>();
  #variables: Environment;

  /** @param env the variables of the start: a key in them stays for the life of the process. */
  constructor(env: Environment, log: Log) {
    this.#env = env;
    this.#variables = env;
    this.#log = log;
  }

  /** Returns the key from the environment for a role, made once. @throws MissingKey */
  key(role: SignerRole): Signer {
    const known = this.#keys.get(role);
    if (known !== undefined) return known;
    const atStart = Object.values(VARIABLES[role]).some((name) => this.#env[name]);
    const made = signerFromEnvironment(atStart || role === 'current' ? this.#env : this.#variables, role);
    this.#keys.set(role, made);
    return made;
  }

  /** Returns the key of the environment if the config signs with it. */
  ownKey(config: Config): Signer | undefined {
    return this.inUse(config)?.current.type === ENVIRONMENT ? this.#keys.get('current') : undefined;
  }

  /** Returns whether these variables hold another key than the one that signs, or an invalid one. */
  isOther(config: Config, env: Environment): boolean {
    const key = this.ownKey(config);
    try {
      return key !== undefined && signerFromEnvironment(env).address !== key.address;
    } catch (error) {
      return !(error instanceof MissingKey);
    }
  }

  /** Returns the open signers of a config; undefined where another plugin signs. */
  inUse(config: Config): SignerSet | undefined {
    return this.#sets.get(config);
  }

  opened(config: Config): SignerSet {
    const set = this.inUse(config);
    if (set === undefined) throw new Error('the signers of this config are not open');
    return set;
  }

  /** Returns the address that signs answers, and the addresses of all signers of a config, with the next one. */
  addressesIn(loaded: LoadedConfig): { readonly node: Address; readonly signers: readonly [Address, ...Address[]] } {
    const node = signerAddressOf(loaded);
    const next = this.inUse(loaded.config)?.next?.signer.address;
    return { node, signers: next === undefined ? [node] : [node, next] };
  }

  /** Opens the signers of a config, unless another config has opened them. @throws Error that says what to do. */
  async open(loaded: LoadedConfig, env: Environment): Promise<void> {
    this.#variables = env;
    const { config, plugins } = loaded;
    // Where another plugin signs, no signer is needed.
    if (!plugins.some(({ definition }) => definition.keys?.includes(signerKey))) return;
    const [, shared] = [...this.#sets].find(([other]) => named(other) === named(config)) ?? [];
    this.#sets.set(config, shared ?? (await this.#open(loaded)));
  }

  /** Closes the signers of a config, unless another config uses them. */
  async release(config: Config): Promise<void> {
    const set = this.#sets.get(config);
    this.#sets.delete(config);
    if (set !== undefined && ![...this.#sets.values()].includes(set)) await this.#close(set);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#sets.keys()].map((config) => this.release(config)));
  }

  async #open(loaded: LoadedConfig): Promise<SignerSet> {
    const chosen = signerKey.in(loaded.config);
    const { next, ...own } = isRecord(chosen) ? chosen : { type: ENVIRONMENT, next: undefined };
    const current = await this.#openOne(own, 'current', loaded);
    if (!isRecord(next)) return { current };
    let set: SignerSet = { current };
    try {
      set = { current, next: await this.#openOne(next, 'next', loaded) };
      // The next signer must differ, or nothing is rotated.
      if (set.next?.signer.address === current.signer.address)
        throw new Error(`settings.signer.next is the signer that signs already: ${current.signer.address}`);
      return set;
    } catch (error) {
      // Forgotten, because a reload may bring a usable key.
      this.#keys.delete('next');
      await this.#close(set);
      throw error;
    }
  }

  async #openOne(
    chosen: Readonly<Record<string, unknown>>,
    role: SignerRole,
    { plugins, hide, path }: LoadedConfig,
  ): Promise<SignerInUse> {
    const { type: name, timeout = SIGNATURE_TIMEOUT_MS, concurrency = CONCURRENCY, ...config } = chosen;
    const types = plugins.flatMap(({ definition }) => Object.entries(definition.signers ?? {}));
    const type = types.find(([each]) => each === name)?.[1];
    if (type === undefined) throw new Error(`no plugin has the signer "${String(name)}"`);
    const signer = await openWithTimeout(type, config, { role, path, log: this.#log }).catch((error: unknown) => {
      const at = role === 'next' ? 'settings.signer.next: ' : 'settings.signer: ';
      // The start adds where it looked for a missing key. A local key is not in the config, so its error names no config path.
      if (error instanceof MissingKey) throw error;
      throw new Error(`${type.local ? '' : at}${hide(errorForLog(error, 'message'))}`);
    });
    // Only the process's own key counts as local; any other signer is checked, whatever its type says.
    const local = type.local === true && signer === this.#keys.get(role);
    return { role, type: String(name), signer, local, timeout: Number(timeout), concurrency: Number(concurrency) };
  }

  async #close({ current, next }: SignerSet): Promise<void> {
    for (const { signer, type } of [current, ...(next ? [next] : [])]) {
      const closed = await withTimeout(CLOSE_TIMEOUT_MS, (async () => signer.close?.())()).catch(() => LATE);
      if (closed === LATE) this.#log.error(`the signer "${type}" did not close`);
    }
  }
}

async function openWithTimeout(type: SignerType, config: unknown, services: SignerServices) {
  const opening = Promise.resolve(type.open(config, services));
  const opened = await withTimeout(OPEN_TIMEOUT_MS, opening);
  if (opened !== LATE) return opened;
  // The signer may still open later; nobody else would close its connections and sessions.
  opening.then((late) => late.close?.()).catch(() => undefined);
  throw new Error(`is not ready after ${OPEN_TIMEOUT_MS} ms`);
}

/** Returns signers with a well-known key, for commands that read a config without serving it. */
export function throwAwaySigning(): Signing {
  const signer = createSigner(`${'0'.repeat(63)}1`);
  const current: SignerInUse = { role: 'current', type: ENVIRONMENT, signer, local: true, timeout: 1, concurrency: 1 };
  return { key: () => signer, opened: () => ({ current }) };
}

/** Returns the part of a config that names its signers, as a text. */
function named(config: Config): string {
  return JSON.stringify(signerKey.in(config) ?? ENVIRONMENT);
}
