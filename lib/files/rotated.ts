import { randomInt } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** A file that was the current one until it was renamed. */
export interface RotatedFile {
  readonly path: string;
  /** Epoch milliseconds of its renaming: about when its last line was written. */
  readonly until: number;
}

const STAMP = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d\.\d{3}Z)-\d+$/;

/** Of this process: those in containers that share a folder often have the same id. */
const NUMBER = randomInt(1e9);

/** What a file is renamed to: names sort by time, and no two processes choose the same one. */
export function rotatedName(path: string, now: number): string {
  return `${path}.${new Date(now).toISOString().replace(/[-:]/g, '')}-${NUMBER}`;
}

/** The files that were renamed so, the oldest first. */
export async function rotatedFiles(path: string): Promise<RotatedFile[]> {
  const folder = dirname(path);
  const begin = `${basename(path)}.`;
  const found = (await readdir(folder)).flatMap((name): RotatedFile[] => {
    const stamp = name.startsWith(begin) ? STAMP.exec(name.slice(begin.length)) : null;
    if (stamp === null) return [];
    const [, year, month, day, hour, minute, rest] = stamp;
    return [{ path: join(folder, name), until: Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${rest}`) }];
  });
  return found.toSorted((a, b) => a.until - b.until || (a.path < b.path ? -1 : 1));
}
