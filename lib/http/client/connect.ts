import dns, { type LookupAddress } from 'node:dns';
import type { LookupFunction, Socket } from 'node:net';
import { promisify } from 'node:util';
import type { buildConnector } from 'undici';
import { undici } from '../../process/lazy.ts';
import { faultText, ProxyFailure } from './faults.ts';
import type { HttpProxy, Proxies } from './proxies.ts';
import { openTunnel } from './tunnel.ts';

/** What servers are shown and believed, as PEM texts. */
export interface ClientTls {
  /** The certificate that the client shows, and those that lead to its authority. */
  readonly cert?: string | undefined;
  /** The private key of that certificate. */
  readonly key?: string | undefined;
  /** The authorities that servers' certificates must be of, in place of those of Node.js. */
  readonly ca?: string | undefined;
}

/** Milliseconds until a connection is given up: a call that has ended leaves its own to that. */
const CONNECT_TIMEOUT_MS = 10_000;

/** Milliseconds for which the addresses of a name are used. */
const ADDRESSES_KEPT_MS = 10_000;

const known = new Map<string, Promise<LookupAddress[]>>();

/** A name is looked up once for all who ask meanwhile: few threads of node look up names, and others wait for them. */
function addressesOf(host: string): Promise<LookupAddress[]> {
  // RFC 6761, section 6.3: such names never leave the machine.
  const name = /\.localhost\.?$/i.test(host) ? 'localhost' : host;
  const found = known.get(host) ?? promisify(dns.lookup)(name, { all: true });
  if (known.has(host)) return found;
  known.set(host, found);
  const forget = () => known.delete(host);
  found.then(() => setTimeout(forget, ADDRESSES_KEPT_MS).unref(), forget);
  return found;
}

const lookup: LookupFunction = (host, { all }, callback) => {
  addressesOf(host).then(
    (found) => (all ? callback(null, found) : callback(null, found[0]?.address ?? '', found[0]?.family)),
    (error) => callback(error, []),
  );
};

/** Opens connections to servers, for those that `proxies` has a proxy for through that one. */
export function connectorThrough(proxies: Proxies, tls?: ClientTls): buildConnector.connector {
  const { buildConnector } = undici();
  const options = { timeout: CONNECT_TIMEOUT_MS, lookup };
  const [toServer, toProxy] = [buildConnector({ ...options, ...tls }), buildConnector(options)];
  return (target, callback) => {
    const proxy = proxies.of(new URL(`${target.protocol}//${target.host}`));
    if (proxy === undefined) return toServer(target, callback);
    socketThrough(proxy, toProxy, target).then(
      (socket) => {
        if (target.protocol === 'https:') toServer({ ...target, httpSocket: socket }, callback);
        else callback(null, socket);
      },
      (error) => callback(error, null),
    );
  };
}

/** To a proxy, and for https through a tunnel: a proxy that is asked for an http URL sends the request on itself. */
async function socketThrough(
  { url, headers }: HttpProxy,
  connect: buildConnector.connector,
  { protocol, host = '', port }: buildConnector.Options,
): Promise<Socket> {
  const way = {
    hostname: url.hostname.replace(/^\[|\]$/g, ''),
    host: url.host,
    protocol: url.protocol,
    port: url.port,
  };
  const socket = await new Promise<Socket>((resolve, reject) =>
    connect(way, (error, connected) => (error === null ? resolve(connected) : reject(error))),
  ).catch((error) => {
    throw new ProxyFailure(`the proxy cannot be reached: ${faultText(error)}`);
  });
  if (protocol === 'https:') await openTunnel(socket, port ? host : `${host}:443`, headers, CONNECT_TIMEOUT_MS);
  return socket;
}
