import dns, { type LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { within } from '../../time/within.ts';
import { candidates, parsedFile, parseSearchRules, RESOLVER_FILE } from './files.ts';

/** The addresses of a name, and for how many milliseconds they may be used. */
export interface Found {
  readonly addresses: readonly LookupAddress[];
  readonly ttl: number;
}

/** Milliseconds until a question is asked again, twice as many each time, and how often: 15 seconds in all. */
const PATIENCE = { timeout: 1000, tries: 4 };

/** Milliseconds that IPv6 addresses are waited for when there are IPv4 addresses already (RFC 8305, section 3). */
const RESOLUTION_DELAY = 50;

/** Nobody answered in time. */
export class NoAnswer extends Error {}

// Of the object: `setServers()` replaces its functions.
const serversAtStart = dns.getServers().join();
const areSetBefore = serversAtStart !== new Resolver().getServers().join();

/** Asks the name servers, off libuv's thread pool: those of the system, or of `dns.setServers()`. */
export class Dns {
  readonly #resolvers: Resolver[] = [];
  /** Whoever changes the file changes the servers, too. */
  readonly #settings = parsedFile(RESOLVER_FILE, (text) => ({ rules: parseSearchRules(text), resolver: this.#open() }));

  /**
   * The addresses of a name, which is completed as the system would; undefined when the servers do not know it, or do not
   * want to say.
   * @throws NoAnswer
   */
  async find(host: string): Promise<Found | undefined> {
    const { rules, resolver } = this.#settings();
    for (const name of candidates(host, rules)) {
      const found = await addressesOf(resolver, name);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Ends all questions. */
  close(): void {
    for (const resolver of this.#resolvers) resolver.cancel();
  }

  #open(): Resolver {
    const resolver = new Resolver(PATIENCE);
    const servers = dns.getServers();
    if (areSetBefore || servers.join() !== serversAtStart) resolver.setServers(servers);
    this.#resolvers.push(resolver);
    return resolver;
  }
}

/** Some servers do not answer questions for IPv6 at all: nobody with an IPv4 address waits long for those. */
async function addressesOf(resolver: Resolver, name: string): Promise<Found | undefined> {
  const asked = settled(resolver.resolve6(name, { ttl: true }), 6);
  const four = await settled(resolver.resolve4(name, { ttl: true }), 4);
  const six = four.addresses.length === 0 ? await asked : await within(RESOLUTION_DELAY, asked, () => NOTHING);
  const [first, second] = prefersIpv6() ? [six, four] : [four, six];
  const addresses = [...first.addresses, ...second.addresses];
  if (addresses.length > 0) return { addresses, ttl: Math.min(four.ttl, six.ttl) };
  if (four.isLate || six.isLate) throw new NoAnswer();
  return undefined;
}

interface Part extends Found {
  readonly isLate: boolean;
}

const NOTHING: Part = { addresses: [], ttl: Number.POSITIVE_INFINITY, isLate: false };

async function settled(records: Promise<{ address: string; ttl: number }[]>, family: 4 | 6): Promise<Part> {
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
  return ownAddresses().some(({ family, address }) => family === 'IPv6' && /^[23]/.test(address));
}

/** None where a sandbox keeps them from the process: they are asked for by a socket of the family AF_NETLINK. */
function ownAddresses(): readonly NetworkInterfaceInfo[] {
  try {
    return Object.values(networkInterfaces()).flatMap((addresses = []) => addresses);
  } catch {
    return [];
  }
}
