import { closeSync, openSync, readSync } from 'node:fs';
import type { AddressInfo, Server } from 'node:net';
import { endianness } from 'node:os';

/** State of a listening socket in `/proc/self/net/tcp`; `/proc/net` is not there with `ProcSubset=pid` of systemd. */
const LISTENING = '0A';
/** That of a connection whose client has not confirmed it, or whose confirmation found the queue full. */
const HANDSHAKE = '03';
const ESTABLISHED = '01';
/** Bytes that are read at a time. Linux lists listening sockets first: the first few tell, however many connections there are. */
const CHUNK = 16 * 1024;

/** What the system holds for a server that listens. */
export interface Queue {
  /** Connections that wait to be accepted: closing the server resets them. */
  readonly waiting: number;
  /** Whether clients are about to be in the queue: they may believe to be connected, and closing the server resets them as well. */
  readonly hasHandshakes: boolean;
  /** Whether the connection from this port has come as far as the queue. */
  readonly hasPlug: boolean;
}

/**
 * Looks into the queue of a server.
 * @param plug a port of this machine.
 * @returns nothing where the system does not tell; only Linux does.
 */
export function queueOf(server: Server, plug = 0): Queue | undefined {
  const address = server.address();
  if (typeof address !== 'object' || address === null) return undefined;
  const [wanted, port, remote] = [kernelNameOf(address), hexOf(address.port), hexOf(plug)];
  let waiting: number | undefined;
  let hasHandshakes = false;
  let hasPlug = false;
  for (const line of linesOf(address.family === 'IPv6' ? '/proc/self/net/tcp6' : '/proc/self/net/tcp')) {
    // Number, local address, remote address, state, length of the send and of the receive queue.
    const [, local = '', from = '', state, queues = ''] = line.trim().split(/ +/, 5);
    if (!local.endsWith(port)) continue;
    if (local === wanted && state === LISTENING) {
      waiting = Number.parseInt(queues.split(':')[1] ?? '0', 16);
      if (plug === 0) break;
    }
    hasHandshakes ||= state === HANDSHAKE;
    hasPlug ||= state === ESTABLISHED && from.endsWith(remote);
  }
  return waiting === undefined ? undefined : { waiting, hasHandshakes, hasPlug };
}

/**
 * Has the system let so many connections wait, and one. Whoever comes beyond asks again after a second (RFC 6298), and is refused when
 * the server is closed by then. Without effect where the runtime does not let it be done.
 */
export function setQueue(server: Server, length: number): void {
  const handle: unknown = Reflect.get(server, '_handle');
  if (typeof handle !== 'object' || handle === null) return;
  const listen: unknown = Reflect.get(handle, 'listen');
  if (typeof listen === 'function') Reflect.apply(listen, handle, [length]);
}

const hexOf = (port: number) => `:${port.toString(16).toUpperCase().padStart(4, '0')}`;

/** An address as the kernel writes it: in words of 32 bits, each in the byte order of the machine. */
function kernelNameOf({ address, family, port }: AddressInfo): string {
  const bytes = family === 'IPv6' ? bytesOfIpv6(address) : Buffer.from(address.split('.').map(Number));
  if (endianness() === 'LE') bytes.swap32();
  return `${bytes.toString('hex').toUpperCase()}${hexOf(port)}`;
}

function bytesOfIpv6(address: string): Buffer {
  // A URL has it in groups of hexadecimal digits, whatever its form, and without a zone.
  const { hostname } = new URL(`http://[${address.replace(/%.*/, '')}]`);
  const [before = [], after = []] = hostname
    .slice(1, -1)
    .split('::')
    .map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return Buffer.from([...before, ...zeros, ...after].map((group) => group.padStart(4, '0')).join(''), 'hex');
}

/** The lines of a file; what nobody asks for is not read. */
function* linesOf(file: string): Generator<string> {
  let descriptor: number;
  try {
    descriptor = openSync(file, 'r');
  } catch {
    return;
  }
  try {
    const chunk = Buffer.alloc(CHUNK);
    let rest = '';
    for (let length = readSync(descriptor, chunk); length > 0; length = readSync(descriptor, chunk)) {
      const lines = (rest + chunk.toString('latin1', 0, length)).split('\n');
      rest = lines.pop() ?? '';
      yield* lines;
    }
  } finally {
    closeSync(descriptor);
  }
}
