import type { LookupAddress } from 'node:dns';
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';

export const HOSTS_FILE =
  process.platform === 'win32'
    ? join(process.env.SystemRoot ?? 'C:\\Windows', 'System32', 'drivers', 'etc', 'hosts')
    : '/etc/hosts';

/** Windows has no such file: there a name is looked up as it is. */
export const RESOLVER_FILE = '/etc/resolv.conf';

/** What a file says, parsed anew when it has changed: lists of hosts that nobody wants have a hundred thousand lines. */
export class ParsedFile<T> {
  readonly #path: string;
  readonly #parse: (text: string) => T;
  #state = '';
  #parsed: T;

  constructor(path: string, parse: (text: string) => T) {
    this.#path = path;
    this.#parse = parse;
    this.#parsed = parse('');
  }

  /** As it is now. A file that is gone is empty; one that cannot be read, for want of descriptors, is as it was. */
  read(): T {
    try {
      const stats = statSync(this.#path, { throwIfNoEntry: false });
      const state = stats === undefined ? '' : `${stats.ino} ${stats.mtimeMs} ${stats.ctimeMs} ${stats.size}`;
      if (state !== this.#state) {
        this.#parsed = this.#parse(stats === undefined ? '' : readFileSync(this.#path, 'utf8'));
        this.#state = state;
      }
    } catch {
      // The next look-up tries again.
    }
    return this.#parsed;
  }
}

/** The addresses that a hosts file (hosts(5)) has for each name in lower case, in their order. */
export function listedAddresses(hosts: string): ReadonlyMap<string, readonly LookupAddress[]> {
  const listed = new Map<string, LookupAddress[]>();
  for (const line of hosts.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').toLowerCase().trim().split(/\s+/);
    const family = isIP(address);
    if (family === 0) continue;
    for (const name of names) {
      const addresses = listed.get(name) ?? [];
      if (!addresses.some((known) => known.address === address)) listed.set(name, [...addresses, { address, family }]);
    }
  }
  return listed;
}
