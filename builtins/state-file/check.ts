import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { createRequire } from 'node:module';

/** Of each kind of state a database in the file. */
const DATABASES = ['values', 'buckets'] as const;

/** Milliseconds for reading all of a file, as long as a start may take. */
const TIMEOUT_MS = 60_000;

/** What makes a database of keys and texts, here and in the check. */
export const ENCODINGS = { keyEncoding: 'binary', encoding: 'string' } as const;

/**
 * Reads all of a file: ends with 0 when it is whole. A damaged file can crash the library, so a process of its own runs this. Pages
 * at the end that were never written are no damage: a transaction took and freed them. They are appended, since a process that maps
 * what is not there is killed when it reads it: of a file that lost some, a write then fails. A file without databases is a new one.
 */
const READ_ALL = `
const [path, library, databases, encodings] = process.argv.slice(1).map((text) => JSON.parse(text));
const fs = require('node:fs');
const env = require(library).open({ path, noSubdir: true, readOnly: true, ...encodings });
let isWhole = true;
for (const name of env.getStats().entryCount > 0 ? databases : []) {
  const db = env.openDB({ name, ...encodings });
  let [count, before] = [0, Buffer.alloc(0)];
  for (const { key, value } of db.getRange()) {
    const sum = require('node:zlib').crc32(key + value.slice(8)).toString(16).padStart(8, '0');
    isWhole &&= value.startsWith(sum) && Buffer.compare(before, key) < 0;
    [count, before] = [count + 1, Buffer.from(key)];
  }
  isWhole &&= count === db.getStats().entryCount;
}
const { lastPageNumber, pageSize } = env.getStats();
const missing = (lastPageNumber + 1) * pageSize - fs.statSync(path).size;
if (isWhole && missing > 0) fs.appendFileSync(path, Buffer.alloc(missing));
process.exit(isWhole ? 0 : 1);`;

/** Opens a file and reads these databases. @throws Error when it is damaged. */
export async function checkFile(path: string, databases: readonly string[] = DATABASES): Promise<void> {
  // One that was just made is no database yet.
  if ((await stat(path)).size === 0) return;
  const library = createRequire(import.meta.url).resolve('lmdb');
  const words = [path, library, databases, ENCODINGS].map((word) => JSON.stringify(word));
  const child = spawn(process.execPath, ['-e', READ_ALL, ...words], { stdio: 'ignore', timeout: TIMEOUT_MS });
  const [code]: unknown[] = await once(child, 'close');
  if (code === 0) return;
  throw new Error(
    `settings.state: ${path} is damaged, or no state file of this service: ` +
      'restore it from a backup, or move it away: then payments made before now are refused',
  );
}
