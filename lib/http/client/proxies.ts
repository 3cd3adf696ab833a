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
  const byProtocol = new Map<string, HttpProxy>();
  for (const scheme of ['http', 'https']) {
    const proxy = proxyOf(variables, `${scheme}_proxy`);
    if (proxy !== undefined) byProtocol.set(`${scheme}:`, proxy);
  }
  const list = variables.no_proxy ?? variables.NO_PROXY ?? '';
  const exceptions = (list.match(/[^\s,]+/g) ?? []).map(exceptionOf);
  return {
    /** Returns the proxy of a request; none for a server on this machine, whatever the variables say. */
    of({ protocol, hostname, port }: URL): HttpProxy | undefined {
      const proxy = byProtocol.get(protocol);
      if (proxy === undefined || isLoopback(hostname)) return undefined;
      const name = hostname.replace(/^\[|\]$|\.$/g, '');
      const host = parseAddress(name) ?? name;
      return exceptions.some((holds) => holds(host, port || DEFAULT_PORTS[protocol])) ? undefined : proxy;
    },
    /** Lines for the log, without credentials: one for each protocol that has a proxy. */
    lines: Array.from(
      byProtocol,
      ([protocol, { url, variable }]) => `${protocol}// is asked for through the proxy ${url.origin} (${variable})`,
    ),
  };
}

/** Checks whether an entry of `no_proxy` covers the server of a request. */
type Exception = (host: string, port: string | undefined) => boolean;

function exceptionOf(text: string): Exception {
  if (text === '*') return () => true;
  if (text.includes('/')) return networkOf(text);
  const [, bracketed, plain, port] = /^(?:\[(.*)\]|([^:]*|.*:.*:.*?))(?::(\d+))?$/.exec(text) ?? [];
  const name = (bracketed ?? plain ?? text).toLowerCase().replace(/^\*?\.|\.$/g, '');
  const host = parseAddress(name) ?? name;
  return (asked, askedPort) =>
    (port === undefined || port === askedPort) && (asked === host || (isIP(asked) === 0 && asked.endsWith(`.${host}`)));
}

/** Matches addresses by CIDR notation. Host names are not resolved for it. */
function networkOf(text: string): Exception {
  if (!ipaddr.isValidCIDR(text)) return () => false;
  const ranges = { covered: [ipaddr.parseCIDR(text)] };
  return (host) => isIP(host) !== 0 && ipaddr.subnetMatch(ipaddr.parse(host), ranges, 'other') === 'covered';
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
