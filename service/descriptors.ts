import { closeSync, openSync, readFileSync } from 'node:fs';

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

/** Whether there is one to be had. Node does not tell when it closes a connection because there is none. */
export function hasDescriptor(): boolean {
  try {
    closeSync(openSync('/dev/null', 'r'));
    return true;
  } catch (error) {
    return !(error instanceof Error && 'code' in error && (error.code === 'EMFILE' || error.code === 'ENFILE'));
  }
}
