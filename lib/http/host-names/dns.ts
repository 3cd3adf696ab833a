import dns, { type LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';
import { withTimeout } from '../../time/with-timeout.ts';
import { ParsedFile, RESOLVER_FILE } from './files.ts';

/** The addresses of a name, and for how many milliseconds they may be used. */
export interface Found {
  readonly addresses: readonly LookupAddress[];
  readonly ttl: number;
}

/** Milliseconds until a question is asked again, twice as many each time, and how often: 15 seconds in all. */
const QUESTION = { timeout: 1000, tries: 4 };

/** How long IPv6 addresses are waited for when there are IPv4 addresses already (RFC 8305, section 3). */
const RESOLUTION_DELAY_MS = 50;

const systemServers = new Resolver().getServers().join();

/** Asks the name servers, off libuv's thread pool: those of the system, or of `dns.setServers()`. */
export class Dns {
  readonly #rules = new ParsedFile(RESOLVER_FILE, String);
  /** The one in use, and the one before it, which may have questions under way. */
  #resolvers: Resolver[] = [];
  #settings: string | undefined;

  /**
   * The addresses of a name; undefined when the servers do not know it, or do not want to say.
   * @throws Error when they say nothing in time
   */
  find(host: string): Promise<Found | undefined> {
    return addressesOf(this.#resolver(), host);
  }

  /** Ends all questions. */
  close(): void {
    for (const resolver of this.#resolvers) resolver.cancel();
  }

  /** One for all questions, which share its sockets; a new one reads the servers from the file as it is now. */
  #resolver(): Resolver {
    // Of the object: `setServers()` replaces its functions.
    const servers = dns.getServers();
    const settings = `${servers.join()}\n${this.#rules.read()}`;
    const last = this.#resolvers.at(-1);
    if (last !== undefined && settings === this.#settings) return last;
    const resolver = new Resolver(QUESTION);
    if (servers.join() !== systemServers) resolver.setServers(servers);
    this.#settings = settings;
    this.#resolvers = [...this.#resolvers.slice(-1), resolver];
    return resolver;
  }
}

/** Some servers do not answer questions for IPv6 at all: nobody with an IPv4 address waits long for those. */
async function addressesOf(resolver: Resolver, name: string): Promise<Found | undefined> {
  const asked = familyOf(resolver.resolve6(name, { ttl: true }), 6);
  const four = await familyOf(resolver.resolve4(name, { ttl: true }), 4);
  const six = four.addresses.length === 0 ? await asked : await withTimeout(RESOLUTION_DELAY_MS, asked, () => NOTHING);
  const families = prefersIpv6() ? [six, four] : [four, six];
  const addresses = families.flatMap((family) => family.addresses);
  if (addresses.length > 0) return { addresses, ttl: Math.min(four.ttl, six.ttl) };
  if (four.isLate || six.isLate) throw new Error('no answer in time');
  return undefined;
}

interface Family extends Found {
  readonly isLate: boolean;
}

const NOTHING: Family = { addresses: [], ttl: Number.POSITIVE_INFINITY, isLate: false };

async function familyOf(records: Promise<{ address: string; ttl: number }[]>, family: 4 | 6): Promise<Family> {
  try {
    const list = await records;
    const ttl = Math.min(...list.map((record) => record.ttl)) * 1000;
    return { addresses: list.map(({ address }) => ({ address, family })), ttl, isLate: false };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    return { ...NOTHING, isLate: code === 'ETIMEOUT' || code === 'ECANCELLED' };
  }
}

/** With an IPv6 address of the public internet it comes first, as RFC 6724 has it; node may be told otherwise. */
function prefersIpv6(): boolean {
  const order: string = dns.getDefaultResultOrder();
  if (order !== 'verbatim') return order === 'ipv6first';
  try {
    const own = Object.values(networkInterfaces()).flat();
    return own.some((one) => one?.family === 'IPv6' && /^[23]/.test(one.address));
  } catch {
    // A sandbox may keep the addresses from the process: a socket of the family AF_NETLINK asks for them.
    return false;
  }
}
