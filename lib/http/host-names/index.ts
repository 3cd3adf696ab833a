import type { LookupAddress, LookupOptions } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { BoundedTtlMap } from '../../bounded/bounded-ttl-map.ts';
import { Dns, type Found } from './dns.ts';
import { HOSTS_FILE, listedAddresses, ParsedFile } from './files.ts';

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

/** What is known of a host name: at least one address, or why there is none. */
interface Known {
  readonly error?: UnknownHost;
  readonly addresses: readonly LookupAddress[];
}

export type Waiter = (error: Known['error'], addresses: Known['addresses']) => void;

type Resolve = (host: string) => Promise<Found>;

export interface HostNamesOptions {
  /** Milliseconds of a clock that does not go back; the process's own by default. */
  readonly now?: () => number;
  /** Finds the addresses of a name, or throws UnknownHost; by default hosts file, DNS, then the system's own resolver. */
  readonly resolve?: Resolve;
}

/** How long addresses are used, whatever their servers say. */
const [SHORTEST_MS, LONGEST_MS] = [1000, 60_000];
/** How long nobody asks again for a name that has no address. */
const FAILURE_MS = 1000;
/** For addresses that come without a time of their own. */
const UNTIMED_MS = 10_000;

const MOST_NAMES = 1000;

/** RFC 6761, section 6.3: these names never leave the machine. */
const LOOPBACK: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/**
 * The addresses of host names. One look-up is under way for a name at a time, whoever asks meanwhile. What it finds is kept
 * for the time that the name's servers say (1 to 60 seconds), that it found nothing for a second.
 */
export class HostNames {
  readonly #now: () => number;
  readonly #resolve: Resolve;
  readonly #known = new BoundedTtlMap<Known>(MOST_NAMES);
  readonly #underWay = new Map<string, Promise<Known>>();
  readonly #hosts = new ParsedFile(HOSTS_FILE, listedAddresses);
  readonly #dns = new Dns();
  #isClosed = false;

  constructor({ now = () => performance.now(), resolve }: HostNamesOptions = {}) {
    this.#now = now;
    this.#resolve = resolve ?? ((host) => this.#search(host));
  }

  /**
   * @param host a name, or an IP address, which is its own answer.
   * @param waiter called once: at once when the answer is known.
   * @returns what ends the wait; the look-up goes on for others.
   */
  find(host: string, waiter: Waiter): () => void {
    const family = isIP(host);
    const known = family === 0 ? this.#known.get(host, this.#now()) : { addresses: [{ address: host, family }] };
    if (known !== undefined) {
      waiter(known.error, known.addresses);
      return () => undefined;
    }
    let waiting: Waiter | undefined = waiter;
    const lookUp = this.#underWay.get(host) ?? this.#lookUp(host);
    this.#underWay.set(host, lookUp);
    lookUp
      .then(({ error, addresses }) => {
        if (!this.#isClosed) waiting?.(error, addresses);
      })
      // The waiter was told; what it makes of that is its own business.
      .catch(() => undefined);
    return () => {
      waiting = undefined;
    };
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
    this.#isClosed = true;
    this.#dns.close();
  }

  async #lookUp(host: string): Promise<Known> {
    const { ttl, ...known } = await this.#resolve(host).catch((error) => ({
      error: error instanceof UnknownHost ? error : new UnknownHost('EAI_AGAIN'),
      addresses: [],
      ttl: FAILURE_MS,
    }));
    this.#underWay.delete(host);
    const now = this.#now();
    this.#known.set(host, known, now + Math.min(Math.max(ttl, SHORTEST_MS), LONGEST_MS), now);
    return known;
  }

  async #search(host: string): Promise<Found> {
    const name = host.toLowerCase().replace(/\.$/, '');
    const listed = this.#hosts.read().get(name);
    if (listed !== undefined) return { addresses: listed, ttl: SHORTEST_MS };
    if (name === 'localhost' || name.endsWith('.localhost')) return { addresses: LOOPBACK, ttl: LONGEST_MS };
    const found = await this.#dns.find(host);
    if (found !== undefined) return found;
    // It completes short names, and knows multicast DNS and directories. It blocks a thread: servers that are silent never get here.
    const addresses = await lookup(host, { all: true }).catch(() => {
      throw new UnknownHost('ENOTFOUND');
    });
    return { addresses, ttl: UNTIMED_MS };
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
