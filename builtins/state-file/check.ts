import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { createRequire } from 'node:module';

/** The databases of a state file: one for each kind of state. */
const DATABASES = ['values', 'buckets'] as const;

/** Timeout for reading a whole file, in milliseconds: as long as a start may take. */
const TIMEOUT_MS = 60_000;

/** The ends of a check that got too little of the machine, as with a limit of memory or threads. */
const UNFINISHED: ReadonlySet<unknown> = new Set(['SIGABRT', 'SIGKILL', 'SIGTERM']);
const WHY_UNFINISHED = 'time, memory or threads are short; if not, the file is damaged';

/** The options of a database of keys and texts, for the service and for the check. */
export const ENCODINGS = { keyEncoding: 'binary', encoding: 'string' } as const;

/**
 * The program that reads a whole file, and exits with 0 if it is intact. A damaged file can crash the library, so it runs in a
 * process of its own. Missing pages at the end are no damage: a transaction took and freed them. They are appended, because a
 * process is killed when it reads a mapped page that the file lacks. If written pages were lost, a later write fails instead. A
 * file without databases is a new one.
 */
const READ_ALL = `
const [path, library, databases, encodings] = process.argv.slice(1).map((text) => JSON.parse(text));
const fs = require('node:fs');
const env = require(library).open({ path, noSubdir: true, readOnly: true, permissionsMode: 0o600, ...encodings });
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

/** Reads databases of a file in a process of its own. @throws Error if the file is damaged, or could not be read to its end. */
export async function checkFile(path: string, databases: readonly string[] = DATABASES): Promise<void> {
  // A file that was just created is no database yet.
  if ((await stat(path)).size === 0) return;
  const library = createRequire(import.meta.url).resolve('lmdb');
  const words = [path, library, databases, ENCODINGS].map((word) => JSON.stringify(word));
  const child = spawn(process.execPath, ['-e', READ_ALL, ...words], { stdio: 'ignore', timeout: TIMEOUT_MS });
  const [code, signal]: unknown[] = await once(child, 'close');
  if (code === 0) return;
  if (UNFINISHED.has(signal))
    throw new Error(`settings.state: ${path} could not be checked (${signal}): ${WHY_UNFINISHED}`);
  throw new Error(
    `settings.state: ${path} is damaged, or no state file of this service: ` +
      'restore it from a backup, or move it away: then payments made before now are refused',
  );
}
