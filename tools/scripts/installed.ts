import { statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root, run } from './package/run.ts';

/**
 * Installs the packages of a folder that has its own lock file, unless they are there and the lock file has not changed since.
 * `npm run apart <folder>` does so, too.
 *
 * @returns the folder's absolute path.
 */
export function installed(folder: string): string {
  const path = join(root, folder);
  const done = statSync(join(path, 'node_modules/.package-lock.json'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (done <= statSync(join(path, 'package-lock.json')).mtimeMs)
    run(path, 'npm', 'ci', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund');
  return path;
}

const [, script, folder] = process.argv;
if (script === fileURLToPath(import.meta.url) && folder !== undefined) installed(folder);
