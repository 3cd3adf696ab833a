import { isIP, isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Longer than any IPv6 address with its zone; a longer text is not parsed. */
const LONGEST_ADDRESS = 128;

/** Forms of an address with a port: `1.2.3.4:555`, `[2001:db8::1]` or `[2001:db8::1]:443`. */
const IPV4_WITH_PORT = /^([\d.]+):\d{1,5}$/;
const BRACKETED_IPV6 = /^\[([^\]]+)\](?::\d{1,5})?$/;

/**
 * Parses one bare IP address and returns its canonical text. IPv4 is four decimal numbers; IPv6 is as RFC 5952 writes it
 * (lower-case, zeros compressed), without a zone id. An IPv4-mapped IPv6 address (`::ffff:1.2.3.4`) is the IPv4 address, and so
 * is the deprecated `::1.2.3.4`.
 *
 * Strict: no leading zeros, no short or octal forms (`127.1`, `010.0.0.1`), no port, no brackets, no white space.
 *
 * @returns `undefined` when the text is no IP address.
 */
export function parseAddress(text: string): string | undefined {
  if (text.length > LONGEST_ADDRESS || isIP(text) === 0) return undefined;
  const [address = ''] = text.split('%');
  // Always rebuilt from its numbers: a slice of a header would keep the whole header in memory.
  return ipaddr.process(address).toString();
}

/**
 * Returns the canonical text of an IP address, and any other text unchanged. So a socket without an address (a Unix
 * socket, one already closed) needs no special case.
 */
export function normalizeAddress(ip: string): string {
  // Valid IPv4 is canonical already, and the texts that callers pass are no slices of longer ones.
  return isIPv4(ip) ? ip : (parseAddress(ip) ?? ip);
}

/**
 * Returns the client's address: the socket's, or the one that a trusted proxy reports in `X-Forwarded-For`.
 *
 * Entries are separated by commas; white space and double quotes round an entry are dropped, and so is a port
 * (`1.2.3.4:555`, `[2001:db8::1]:443`). IPv6 without brackets is read as an address without a port. Every place
 * between two commas counts as an entry, also an empty one or a word such as `unknown`.
 *
 * @param socketAddress - the peer's address as the socket gives it.
 * @param forwardedFor - the value of `X-Forwarded-For`; several headers are joined with `,` beforehand.
 * @param trust - `false`: the header is ignored. `true`: the left-most entry that parses as an IP address, which a
 *   client can choose unless the proxy overwrites the header. A number n: the n-th entry from the right, for n proxies
 *   that append; when it is absent or no address, the socket's. Anything but a positive integer is `false`.
 * @returns the canonical text of the address; the socket's whenever the header gives none.
 */
export function forwardedClient(
  socketAddress: string,
  forwardedFor: string | undefined,
  trust: boolean | number,
): string {
  const forwarded = forwardedFor === undefined ? undefined : chooseEntry(forwardedFor, trust);
  return forwarded ?? normalizeAddress(socketAddress);
}

/**
 * Returns the key by which a client is limited: its IPv4 address, or the /64 of its IPv6 address (`2001:db8:1:2::/64`).
 * One subscriber has at least a /64 (RFC 6177). IPv4-mapped addresses count as IPv4. Text that is no address is its own key.
 */
export function clientKey(ip: string): string {
  const address = normalizeAddress(ip);
  if (isIPv4(address) || !isIPv6(address)) return address;
  const network = ipaddr.IPv6.parse(address).parts.slice(0, 4);
  return `${new ipaddr.IPv6([...network, 0, 0, 0, 0]).toString()}/64`;
}

function chooseEntry(header: string, trust: boolean | number): string | undefined {
  const entries = header.split(',');
  // Only entries before the first address are parsed: there may be thousands.
  if (trust === true) return parseEntry(entries.find((entry) => parseEntry(entry) !== undefined) ?? '');
  const isPlace = typeof trust === 'number' && Number.isInteger(trust) && trust >= 1;
  return isPlace ? parseEntry(entries.at(-trust) ?? '') : undefined;
}

function parseEntry(entry: string): string | undefined {
  const text = entry.trim().replace(/^"(.*)"$/, '$1');
  const host = BRACKETED_IPV6.exec(text)?.[1];
  if (host !== undefined) return isIPv6(host) ? parseAddress(host) : undefined;
  return parseAddress(IPV4_WITH_PORT.exec(text)?.[1] ?? text);
}
