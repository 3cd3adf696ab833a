import { readFileSync } from 'node:fs';

/**
 * File descriptors that the process may have open: sockets count among them.
 * @returns `Infinity` where the system does not tell.
 */
export function descriptorLimit(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
