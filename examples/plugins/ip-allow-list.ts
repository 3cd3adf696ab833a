/**
 * Serves only clients from the addresses and networks of a list.
 *
 * Behind a reverse proxy every request comes from the proxy's address unless `server.rateLimit.trustForwardedFor` is set.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./ip-allow-list.ts
 *       config:
 *         allow: ['203.0.113.7', '10.0.0.0/8', '2001:db8::/32']
 * ```
 */
import { normalizeAddress, type SimplePlugin, type Static, Type } from 'signed-data-proxy/plugins-sdk';

export const configSchema = Type.Object(
  {
    allow: Type.Array(Type.String(), {
      minItems: 1,
      description: 'IPv4 and IPv6 addresses, and networks in CIDR notation',
    }),
  },
  { additionalProperties: false },
);

/** Makes the plugin. @throws Error naming an entry that is neither an address nor a network. */
export default function ipAllowList({ allow }: Static<typeof configSchema>): SimplePlugin {
  const networks = allow.map(parseNetwork);
  const rejection = { reject: true, status: 403, message: 'Address not allowed' };
  return {
    name: 'ip-allow-list',
    hooks: {
      onHttpRequest({ ip }) {
        const client = parseAddress(ip);
        const allowed = client !== undefined && networks.some((network) => contains(network, client));
        return allowed ? undefined : rejection;
      },
    },
  };
}

/** The binary digits of an address: 32 for IPv4, 128 for IPv6. */
type Bits = string;

interface Network {
  readonly prefix: Bits;
  /** Number of digits of its addresses. */
  readonly width: number;
}

function contains({ prefix, width }: Network, address: Bits): boolean {
  return address.length === width && address.startsWith(prefix);
}

function parseNetwork(entry: string, index: number): Network {
  const [, address = '', length] = /^([^/]+)(?:\/(0|[1-9]\d{0,2}))?$/.exec(entry) ?? [];
  const bits = parseAddress(address);
  if (bits === undefined) throw invalid(entry, index);
  const width = bits.length;
  // `::ffff:10.0.0.0/104` is `10.0.0.0/8`.
  const offset = address.includes(':') ? 128 - width : 0;
  const digits = length === undefined ? width : Number(length) - offset;
  if (digits < 0 || digits > width) throw invalid(entry, index);
  if (bits.includes('1', digits)) throw new Error(`allow[${index}]: "${entry}" has bits set behind its /${length}`);
  return { prefix: bits.slice(0, digits), width };
}

function invalid(entry: string, index: number): Error {
  return new Error(`allow[${index}]: "${entry}" is neither an IP address nor a network such as 10.0.0.0/8`);
}

/** Returns the bits of an IP address, or `undefined` for any other text. An IPv4-mapped IPv6 address counts as IPv4. */
function parseAddress(text: string): Bits | undefined {
  const address = normalizeAddress(text);
  const bytes = address.split('.');
  if (bytes.length === 4 && bytes.every(isByte)) return digitsOf(bytes.map(Number), 8);
  const groups = expand(address);
  if (groups.length === 8 && groups.every(isGroup)) {
    return digitsOf(
      groups.map((group) => Number.parseInt(group, 16)),
      16,
    );
  }
  return undefined;
}

function isByte(text: string): boolean {
  return /^(0|[1-9]\d{0,2})$/.test(text) && Number(text) <= 255;
}

function isGroup(text: string): boolean {
  return /^[0-9a-f]{1,4}$/.test(text);
}

/** Returns the groups of an IPv6 address, with `::` written out. */
function expand(address: string): string[] {
  const [head, tail, surplus] = address.split('::').map((part) => (part === '' ? [] : part.split(':')));
  if (head === undefined || surplus !== undefined) return [];
  if (tail === undefined) return head;
  const zeros = new Array<string>(Math.max(8 - head.length - tail.length, 0)).fill('0');
  return [...head, ...zeros, ...tail];
}

function digitsOf(numbers: readonly number[], width: number): Bits {
  return numbers.map((number) => number.toString(2).padStart(width, '0')).join('');
}
