import type { LookupAddress, LookupOptions } from 'node:dns';
import { isIP } from 'node:net';
import { BoundedTtlMap } from '../../bounded/bounded-ttl-map.ts';
import { Dns, type Found, NoAnswer } from './dns.ts';
import { HOSTS_FILE, parsedFile, parseHosts } from './files.ts';
import { SystemResolver } from './system.ts';

/** Why a host name has no address; its codes are those of `dns.lookup`. */
export class UnknownHost extends Error {
  override readonly name = 'UnknownHost';
  /** `ENOTFOUND`: nobody knows it; `EAI_AGAIN`: nobody said in time. */
  readonly code: 'ENOTFOUND' | 'EAI_AGAIN';

  constructor(code: 'ENOTFOUND' | 'EAI_AGAIN') {
    super(`no address (${code})`);
    this.code = code;
  }
}

/** Takes the addresses, of which there is at least one, or the reason why there are none. */
export type Waiter = (error: UnknownHost | undefined, addresses: readonly LookupAddress[]) => void;

type Resolve = (host: string) => Promise<Found>;

export interface HostNamesOptions {
  /** Milliseconds of a clock that does not go back; the process's own by default. */
  readonly now?: () => number;
  /** Finds the addresses of a name, or throws UnknownHost; by default hosts file, DNS, then the system's own resolver. */
  readonly resolve?: Resolve;
}

/** Milliseconds that addresses are used, whatever their servers say. */
const [SHORTEST, LONGEST] = [1000, 60_000];
/** Milliseconds in which nobody asks again for a name that has no address. */
const FAILURE = 1000;
/** Milliseconds for addresses that come without a time of their own. */
const UNTIMED = 10_000;

const MOST_NAMES = 1000;

/** RFC 6761, section 6.3: these names never leave the machine. */
const LOOPBACK: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/**
 * The addresses of host names. One look-up is under way for a name at a time, whoever asks meanwhile; what it finds is kept
 * for the time that the name's servers say (1 to 60 seconds), that it found nothing for a second.
 */
export class HostNames {
  readonly #now: () => number;
  readonly #resolve: Resolve;
  readonly #known = new BoundedTtlMap<readonly LookupAddress[] | UnknownHost>(MOST_NAMES);
  readonly #waiting = new Map<string, Set<Waiter>>();
  readonly #dns = new Dns();
  readonly #system = new SystemResolver();
  readonly #hosts = parsedFile(HOSTS_FILE, parseHosts);

  constructor({ now = () => performance.now(), resolve }: HostNamesOptions = {}) {
    this.#now = now;
    this.#resolve = resolve ?? ((host) => this.#look(host));
  }

  /**
   * @param host a name, or an IP address, which is its own answer.
   * @param waiter called once: at once when the answer is known.
   * @returns what ends the wait; the look-up goes on for others.
   */
  find(host: string, waiter: Waiter): () => void {
    const family = isIP(host);
    const known = family === 0 ? this.#known.get(host, this.#now()) : [{ address: host, family }];
    if (known !== undefined) {
      if (known instanceof UnknownHost) waiter(known, []);
      else waiter(undefined, known);
      return () => undefined;
    }
    const waiting = this.#waiting.get(host) ?? this.#begin(host);
    waiting.add(waiter);
    return () => waiting.delete(waiter);
  }

  /** The same as an option of node's own `connect`. */
  readonly lookup = (
    host: string,
    { all, family = 0 }: LookupOptions,
    callback: (error: Error | null, address: string | LookupAddress[], family?: number) => void,
  ): void => {
    this.find(host, (error, addresses) => {
      const wanted = Number(String(family).replace('IPv', ''));
      const fitting = addresses.filter((address) => wanted === 0 || address.family === wanted);
      const [first] = fitting;
      if (first === undefined) callback(error ?? new UnknownHost('ENOTFOUND'), []);
      else if (all) callback(null, fitting);
      else callback(null, first.address, first.family);
    });
  };

  /** Ends the look-ups under way; nobody who still waits gets an answer. */
  close(): void {
    this.#waiting.clear();
    this.#dns.close();
    this.#system.close();
  }

  #begin(host: string): Set<Waiter> {
    const waiting = new Set<Waiter>();
    this.#waiting.set(host, waiting);
    const end = (known: readonly LookupAddress[] | UnknownHost, ttl: number) => {
      if (this.#waiting.get(host) !== waiting) return;
      this.#waiting.delete(host);
      const now = this.#now();
      this.#known.set(host, known, now + ttl, now);
      for (const waiter of waiting) tell(waiter, known);
    };
    this.#resolve(host).then(
      ({ addresses, ttl }) => end(addresses, Math.min(Math.max(ttl, SHORTEST), LONGEST)),
      (error) => end(error instanceof UnknownHost ? error : new UnknownHost('EAI_AGAIN'), FAILURE),
    );
    return waiting;
  }

  async #look(host: string): Promise<Found> {
    const name = host.toLowerCase().replace(/\.$/, '');
    const listed = this.#hosts().get(name);
    if (listed !== undefined) return { addresses: listed, ttl: SHORTEST };
    if (name === 'localhost' || name.endsWith('.localhost')) return { addresses: LOOPBACK, ttl: LONGEST };
    try {
      const found = await this.#dns.find(host);
      if (found !== undefined) return found;
    } catch (error) {
      throw error instanceof NoAnswer ? new UnknownHost('EAI_AGAIN') : error;
    }
    const addresses = await this.#system.find(host);
    if (addresses.length === 0) throw new UnknownHost('ENOTFOUND');
    return { addresses, ttl: UNTIMED };
  }
}

/** One that fails keeps nobody else from its answer. */
function tell(waiter: Waiter, known: readonly LookupAddress[] | UnknownHost): void {
  try {
    if (known instanceof UnknownHost) waiter(known, []);
    else waiter(undefined, known);
  } catch {
    // It was told; what it makes of that is its own business.
  }
}

let shared: HostNames | undefined;
let borrowers = 0;

/** The one of the process; give it back with {@link returnHostNames}. */
export function borrowHostNames(): HostNames {
  borrowers += 1;
  shared ??= new HostNames();
  return shared;
}

/** Called once for each time that it was borrowed: the last one ends the look-ups. */
export function returnHostNames(): void {
  borrowers -= 1;
  if (borrowers > 0) return;
  shared?.close();
  shared = undefined;
}
