import dns, { type LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';

/** Milliseconds for which addresses are used, and for which a name without any is not looked up again. */
const KEPT_MS = 10_000;
const FAILURE_KEPT_MS = 1000;
const MOST_NAMES = 1000;

type Addresses = Promise<LookupAddress[]>;

const known = new Map<string, Addresses>();

/** The system's resolver as the option `lookup` of connections. A name is looked up once for all who ask meanwhile. */
export const lookUp: LookupFunction = (host, { all }, callback) => {
  addressesOf(host).then(
    ([first, ...others]) => {
      if (all) callback(null, first === undefined ? [] : [first, ...others]);
      else callback(null, first?.address ?? '', first?.family);
    },
    (error) => callback(error, []),
  );
};

function addressesOf(host: string): Addresses {
  const found = known.get(host) ?? search(host);
  if (known.size >= MOST_NAMES) known.clear();
  known.set(host, found);
  return found;
}

async function search(host: string): Addresses {
  const forget = (milliseconds: number) => setTimeout(() => known.delete(host), milliseconds).unref();
  try {
    const addresses = await resolved(host);
    forget(KEPT_MS);
    return addresses;
  } catch (error) {
    forget(FAILURE_KEPT_MS);
    throw error;
  }
}

function resolved(host: string): Addresses {
  // RFC 6761, section 6.3: such names never leave the machine.
  const name = /\.localhost\.?$/i.test(host) ? 'localhost' : host;
  return new Promise((resolve, reject) => {
    dns.lookup(name, { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)));
  });
}
