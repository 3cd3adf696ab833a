import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { parseAddress } from '../client-address.ts';
import { type HttpTarget, httpTarget, isLoopback } from '../target.ts';

type Variables = Readonly<Record<string, string | undefined>>;

/** A proxy from an environment variable: its URL without user name and password, and the headers of requests to it. */
export interface HttpProxy extends HttpTarget {
  /** Name of the environment variable, such as `HTTPS_PROXY`. */
  readonly variable: string;
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };

/**
 * Reads the proxies of requests from the usual environment variables. `http_proxy` and `https_proxy` are for URLs of that
 * scheme; `no_proxy` lists the hosts that need none. An upper-case variable counts if its lower-case form is not set.
 *
 * @throws Error naming a variable whose value is no HTTP proxy. The value is not shown: it may hold a password.
 */
export function proxiesIn(variables: Variables) {
  const proxies: Readonly<Record<string, HttpProxy | undefined>> = {
    'http:': proxyOf(variables, 'http_proxy'),
    'https:': proxyOf(variables, 'https_proxy'),
  };
  const exceptions = (variables.no_proxy ?? variables.NO_PROXY ?? '').match(/[^\s,]+/g) ?? [];
  return {
    /** Returns the proxy of a request; none for a server on this machine, whatever the variables say. */
    of({ protocol, hostname, port }: URL): HttpProxy | undefined {
      if (isLoopback(hostname)) return undefined;
      const name = hostname.replace(/^\[|\]$|\.$/g, '');
      const host = parseAddress(name) ?? name;
      const isException = exceptions.some((entry) => covers(entry, host, port || DEFAULT_PORTS[protocol]));
      return isException ? undefined : proxies[protocol];
    },
    /** Lines for the log, without credentials: one for each protocol that has a proxy. */
    lines: Object.entries(proxies).flatMap(([protocol, proxy]) =>
      proxy ? `${protocol}// is asked for through the proxy ${proxy.url.origin} (${proxy.variable})` : [],
    ),
  };
}

/** Checks whether an entry of `no_proxy` covers a server. */
function covers(entry: string, host: string, port: string | undefined): boolean {
  if (entry === '*') return true;
  if (entry.includes('/')) return isIP(host) !== 0 && isInNetwork(host, entry);
  const [, bracketed, plain, ownPort = port] = /^(?:\[(.*)\]|([^:]*|.*:.*:.*?))(?::(\d+))?$/.exec(entry) ?? [];
  const name = (bracketed ?? plain ?? entry).toLowerCase().replace(/^\*?\.|\.$/g, '');
  const own = parseAddress(name) ?? name;
  return ownPort === port && (host === own || (isIP(host) === 0 && host.endsWith(`.${own}`)));
}

function isInNetwork(address: string, cidr: string): boolean {
  const ranges = ipaddr.isValidCIDR(cidr) ? { covered: [ipaddr.parseCIDR(cidr)] } : {};
  return ipaddr.subnetMatch(ipaddr.parse(address), ranges, 'other') === 'covered';
}

function proxyOf(variables: Variables, name: string): HttpProxy | undefined {
  const variable = variables[name] === undefined ? name.toUpperCase() : name;
  const value = variables[variable];
  if (!value) return undefined;
  try {
    const { url, headers } = httpTarget(/^[a-z][a-z\d+.-]*:\/\//i.test(value) ? value : `http://${value}`);
    if (!Object.hasOwn(DEFAULT_PORTS, url.protocol)) throw new Error('another protocol');
    const { authorization } = headers;
    return { variable, url, headers: authorization === undefined ? {} : { 'proxy-authorization': authorization } };
  } catch {
    throw new Error(`${variable}: must be the URL of an HTTP proxy, such as http://proxy.example:3128`);
  }
}

let inForce: Variables = process.env;

/** Sets the variables that clients created from now on read, in place of the process's environment. */
export function useProxyVariables(variables: Variables): void {
  inForce = variables;
}

/** Returns the proxies that the current variables name. @throws Error as {@link proxiesIn} does. */
export function proxiesInForce() {
  return proxiesIn(inForce);
}
