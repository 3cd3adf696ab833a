import dns, { type LookupAddress } from 'node:dns';
import { request } from 'node:http';
import { type LookupFunction, Socket } from 'node:net';
import { promisify } from 'node:util';
import { LRUCache } from 'lru-cache';
import type { buildConnector } from 'undici';
import { undiciConnector } from '../../process/packages.ts';
import { codeOf, faultText, proxyFault } from './faults.ts';
import type { HttpProxy } from './proxies.ts';

/** The TLS settings for connections to servers. Certificates and keys are PEM texts. */
export interface ClientTls {
  /** The client's certificate, followed by its intermediate certificates. */
  readonly cert?: string | undefined;
  /** The private key of that certificate. */
  readonly key?: string | undefined;
  /** The authorities that are trusted to issue servers' certificates, in place of those of Node.js. */
  readonly ca?: string | undefined;
  /** The name that is sent to servers (SNI) and that their certificates must have, in place of the host in the URL. */
  readonly servername?: string | undefined;
}

/** Milliseconds for which the addresses of a name are used without another lookup. */
const ADDRESSES_KEPT_MS = 10_000;
/** Milliseconds that a repeated lookup may take before the old addresses are used again. */
const LOOKUP_TIMEOUT_MS = 250;
const MOST_NAMES = 1000;

/**
 * Known addresses by host name. Concurrent calls for a name share one lookup. Node.js looks names up on a few threads, which
 * silent name servers can block. So old addresses are used until a lookup that takes long has a result.
 */
const addresses = new LRUCache<string, LookupAddress[]>({
  max: MOST_NAMES,
  ttl: ADDRESSES_KEPT_MS,
  allowStaleOnFetchAbort: true,
  fetchMethod: async (host, old, { signal }) => {
    try {
      // RFC 6761, section 6.3: names below localhost never leave the machine.
      return await promisify(dns.lookup)(/\.localhost\.?$/i.test(host) ? 'localhost' : host, { all: true });
    } catch (error) {
      // Name servers that fail have not said that the name is gone.
      if (old !== undefined && error instanceof Error && codeOf(error) === 'EAI_AGAIN') return old;
      // lru-cache ignores an error that comes late, and would go on with the old addresses.
      if (signal.aborted) addresses.delete(host);
      throw error;
    }
  },
});

const lookup: LookupFunction = (host, { all }, callback) => {
  const old = addresses.peek(host, { allowStale: true });
  addresses.fetch(host, old && { signal: AbortSignal.timeout(LOOKUP_TIMEOUT_MS) }).then(
    (found = []) => (all ? callback(null, found) : callback(null, found[0]?.address ?? '', found[0]?.family)),
    (error) => callback(error, []),
  );
};

/** Connects to a server. Calls `opening` with each socket that it opens, while the socket is still connecting. */
export type Connect = (target: buildConnector.Options, opening: (socket: Socket) => void) => Promise<Socket>;

/** Returns a function that connects to servers, through the proxy if there is one. */
export function connectorThrough(proxy: HttpProxy | undefined, tls?: ClientTls): Connect {
  const buildConnector = undiciConnector();
  // No connect timeout: at its own deadline a call destroys its socket, even one that is still connecting.
  const options = { timeout: 0, lookup };
  const [toServer, toProxy] = [buildConnector({ ...options, ...tls }), buildConnector(options)];
  if (proxy === undefined) return (target, opening) => connected(toServer, target, opening);
  const { hostname, host, protocol, port } = proxy.url;
  const way = { hostname: hostname.replace(/^\[|\]$/g, ''), host, protocol, port };
  return async (target, opening) => {
    const socket = await connected(toProxy, way, opening).catch((error) => {
      throw proxyFault(`the proxy cannot be reached: ${faultText(error)}`);
    });
    // An http URL needs no tunnel: the proxy forwards the request itself.
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
    // The result is typed as void but is the socket. There is no other way to reach it while it is connecting.
    const socket: unknown = connect(target, (error, done) => (error === null ? resolve(done) : reject(error)));
    if (socket instanceof Socket) opening(socket);
  });
}

export const WRONG_CREDENTIALS = 'the proxy wants another user name and password (407)';

/**
 * Asks a proxy, to which `socket` is connected, for a tunnel to a server (RFC 9110, section 9.3.6). Afterwards the socket leads
 * to the server.
 *
 * @param authority host and port of the server.
 * @throws RequestFailure when the proxy opens no tunnel.
 */
async function openTunnel(socket: Socket, authority: string, headers: HttpProxy['headers']): Promise<void> {
  const asked = request({
    method: 'CONNECT',
    path: authority,
    headers: { host: authority, ...headers },
    createConnection: () => socket,
  });
  // The header would be about the tunnel, which must stay open.
  asked.removeHeader('connection');
  const problem = await new Promise<string | undefined>((resolve) => {
    asked.once('error', (error) => resolve(`the proxy gave no answer: ${faultText(error)}`));
    asked.once('connect', ({ statusCode = 0 }, _socket, early: Buffer) => {
      if (statusCode === 407) resolve(WRONG_CREDENTIALS);
      else if (statusCode < 200 || statusCode > 299) resolve(`the proxy refuses to connect: status ${statusCode}`);
      else resolve(early.length > 0 ? 'the proxy sent bytes that nobody had asked the server for' : undefined);
    });
    asked.end();
  });
  // Until the user of the tunnel listens for errors, one without a listener would end the process.
  socket.on('error', () => undefined);
  if (problem === undefined) return;
  socket.destroy();
  throw proxyFault(problem);
}
