import type { LookupAddress } from 'node:dns';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';

export const HOSTS_FILE =
  process.platform === 'win32'
    ? join(process.env.SystemRoot ?? 'C:\\Windows', 'System32', 'drivers', 'etc', 'hosts')
    : '/etc/hosts';

/** Windows has no such file: there a name is looked up as it is. */
export const RESOLVER_FILE = '/etc/resolv.conf';

/** What a file says now. One that cannot be read is empty. */
export function contentOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** The addresses that a hosts file (hosts(5)) has for a name in lower case, in their order. */
export function listedAddresses(hosts: string, name: string): LookupAddress[] {
  const lines = hosts.split('\n').map((line) => line.replace(/#.*/, '').toLowerCase());
  const entries = lines.filter((line) => line.includes(name)).map((line) => line.trim().split(/\s+/));
  const found = entries.filter(([address = '', ...names]) => isIP(address) > 0 && names.includes(name));
  return [...new Set(found.map(([address = '']) => address))].map((address) => ({ address, family: isIP(address) }));
}

/**
 * The names that the system's own resolver would ask for in turn (resolv.conf(5)). Of several lines the last one counts. A
 * dot at the end means the name itself.
 */
export function candidates(name: string, rules: string): string[] {
  if (name.endsWith('.')) return [name];
  const machine = ['', hostname().replace(/^[^.]*\.?/, '')];
  const [, search, domain = search] = [...rules.matchAll(/^\s*(?:search\b(.*)|domain\s+(\S+))/gm)].at(-1) ?? machine;
  const [, ndots = 1] = [...rules.matchAll(/^\s*options\b.*\bndots:(\d+)/gm)].at(-1) ?? [];
  const domains = (domain ?? '').split(/\s+/).map((one) => one.replace(/\.$/, ''));
  const completed = domains.filter((one) => one !== '').map((one) => `${name}.${one}`);
  const dots = name.split('.').length - 1;
  return dots >= Number(ndots) ? [name, ...completed] : [...completed, name];
}
