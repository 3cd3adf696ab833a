import dns, { type LookupAddress } from 'node:dns';
import { type LookupFunction, Socket } from 'node:net';
import { promisify } from 'node:util';
import { LRUCache } from 'lru-cache';
import type { buildConnector } from 'undici';
import { undici } from '../../process/lazy.ts';
import { withTimeout } from '../../time/with-timeout.ts';
import { faultText, proxyFault } from './faults.ts';
import type { HttpProxy } from './proxies.ts';
import { openTunnel } from './tunnel.ts';

/** What servers are shown and believed, as PEM texts. */
export interface ClientTls {
  /** The certificate that the client shows, and those that lead to its authority. */
  readonly cert?: string | undefined;
  /** The private key of that certificate. */
  readonly key?: string | undefined;
  /** The authorities that servers' certificates must be of, in place of those of Node.js. */
  readonly ca?: string | undefined;
  /** The name that servers are asked for, and that their certificates must have, in place of the host in the URL. */
  readonly servername?: string | undefined;
}

/** Milliseconds for which the addresses of a name are used, and after which they do when the resolver has no others yet. */
const ADDRESSES_KEPT_MS = 10_000;
const PATIENCE_MS = 250;
const MOST_NAMES = 1000;

/** A name is looked up once for all who ask meanwhile. */
const addresses = new LRUCache<string, LookupAddress[]>({
  max: MOST_NAMES,
  ttl: ADDRESSES_KEPT_MS,
  ignoreFetchAbort: true,
  // RFC 6761, section 6.3: names below localhost never leave the machine.
  fetchMethod: (host) => promisify(dns.lookup)(/\.localhost\.?$/i.test(host) ? 'localhost' : host, { all: true }),
});

/** Few threads of node look up names: silent ones hold up others, which are then reached where they were, until they are asked for again. */
async function addressesOf(host: string): Promise<LookupAddress[]> {
  const found = addresses.fetch(host);
  const old = addresses.get(host, { allowStale: true });
  if (old === undefined) return (await found) ?? [];
  return (await withTimeout(PATIENCE_MS, found, () => addresses.set(host, old).get(host))) ?? [];
}

const lookup: LookupFunction = (host, { all }, callback) => {
  addressesOf(host).then(
    (found) => (all ? callback(null, found) : callback(null, found[0]?.address ?? '', found[0]?.family)),
    (error) => callback(error, []),
  );
};

/** Connects to a server, and tells `opening` of each socket for it, also of one that is still connecting. */
export type Connect = (target: buildConnector.Options, opening: (socket: Socket) => void) => Promise<Socket>;

/** Opens connections to a server, through its proxy where it has one. */
export function connectorThrough(proxy: HttpProxy | undefined, tls?: ClientTls): Connect {
  const { buildConnector } = undici();
  // No connect timeout: a call destroys its socket at its own deadline, also one that is still connecting.
  const options = { timeout: 0, lookup };
  const [toServer, toProxy] = [buildConnector({ ...options, ...tls }), buildConnector(options)];
  if (proxy === undefined) return (target, opening) => connected(toServer, target, opening);
  const { hostname, host, protocol, port } = proxy.url;
  const way = { hostname: hostname.replace(/^\[|\]$/g, ''), host, protocol, port };
  return async (target, opening) => {
    const socket = await connected(toProxy, way, opening).catch((error) => {
      throw proxyFault(`the proxy cannot be reached: ${faultText(error)}`);
    });
    // A proxy that is asked for an http URL sends the request on itself.
    if (target.protocol !== 'https:') return socket;
    await openTunnel(socket, target.port ? (target.host ?? '') : `${target.host}:443`, proxy.headers);
    return connected(toServer, { ...target, httpSocket: socket }, opening);
  };
}

function connected(
  connect: buildConnector.connector,
  target: buildConnector.Options,
  opening: (socket: Socket) => void,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    // Typed as void, but it is the socket, and the only way to reach one that is still connecting.
    const socket: unknown = connect(target, (error, done) => (error === null ? resolve(done) : reject(error)));
    if (socket instanceof Socket) opening(socket);
  });
}
