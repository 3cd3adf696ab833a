import type { LookupAddress } from 'node:dns';
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';

const WINDOWS = process.platform === 'win32';

export const HOSTS_FILE = WINDOWS
  ? join(process.env.SystemRoot ?? 'C:\\Windows', 'System32', 'drivers', 'etc', 'hosts')
  : '/etc/hosts';

/** Windows has no such file: there a name is looked up as it is. */
export const RESOLVER_FILE = '/etc/resolv.conf';

/** What a file says now: it is parsed again when it has changed. One that cannot be read is empty. */
export function parsedFile<T>(path: string, parse: (text: string) => T): () => T {
  let version: string | undefined;
  let parsed: T | undefined;
  return () => {
    const present = versionOf(path);
    if (parsed === undefined || present !== version) parsed = parse(present === '' ? '' : textOf(path));
    version = present;
    return parsed;
  };
}

function versionOf(path: string): string {
  try {
    const { ino, size, mtimeMs } = statSync(path);
    return `${ino} ${size} ${mtimeMs}`;
  } catch {
    return '';
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** The words of each line, without comments. */
function wordsOf(text: string, comment: RegExp): string[][] {
  const lines = text.split('\n').map((line) => line.replace(comment, '').trim());
  return lines.filter((line) => line !== '').map((line) => line.split(/\s+/));
}

/** The addresses of each name in a hosts file (hosts(5)), in their order; names are in lower case. */
export function parseHosts(text: string): ReadonlyMap<string, readonly LookupAddress[]> {
  const hosts = new Map<string, LookupAddress[]>();
  for (const [address = '', ...names] of wordsOf(text, /#.*/)) {
    const family = isIP(address);
    if (family === 0) continue;
    for (const name of names.map((written) => written.toLowerCase())) {
      const known = hosts.get(name) ?? [];
      if (!known.some((other) => other.address === address)) hosts.set(name, [...known, { address, family }]);
    }
  }
  return hosts;
}

/** How names are completed (resolv.conf(5)). */
export interface SearchRules {
  /** Domains that a name may be meant in. */
  readonly domains: readonly string[];
  /** A name with so many dots is looked up as it is first. */
  readonly ndots: number;
}

/** Reads `search`, `domain` and `options ndots:n`, of which the last one counts; the domain is the machine's by default. */
export function parseSearchRules(text: string): SearchRules {
  let domains = [hostname().replace(/^[^.]*\.?/, '')];
  let ndots = 1;
  for (const [keyword, ...words] of wordsOf(text, /^\s*[#;].*/)) {
    if (keyword === 'search') domains = words;
    if (keyword === 'domain') domains = words.slice(0, 1);
    if (keyword !== 'options') continue;
    for (const option of words) ndots = Number(/^ndots:(\d+)$/.exec(option)?.[1] ?? ndots);
  }
  return { domains: domains.map((domain) => domain.replace(/\.$/, '')).filter((domain) => domain !== ''), ndots };
}

/** The names that are asked for in turn, as the system's own resolver would. A dot at the end means the name itself. */
export function candidates(name: string, { domains, ndots }: SearchRules): string[] {
  if (name.endsWith('.')) return [name];
  const completed = domains.map((domain) => `${name}.${domain}`);
  const dots = name.split('.').length - 1;
  return dots >= ndots ? [name, ...completed] : [...completed, name];
}
