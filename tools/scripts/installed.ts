import { statSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './package/run.ts';

/**
 * Installs the packages of a folder that has its own lock file, unless they are there and the lock file has not changed since.
 * @returns the paths of files in the folder, and a function that runs one of the programs: its output, or an Error.
 */
export function installed(folder: string) {
  const path = (name: string) => join(root, folder, name);
  const done = statSync(path('node_modules/.package-lock.json'), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (done <= statSync(path('package-lock.json')).mtimeMs)
    run(path('.'), 'npm', 'ci', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund');
  return {
    path,
    run: (program: string, ...args: string[]) => run(root, path(`node_modules/.bin/${program}`), ...args),
  };
}
