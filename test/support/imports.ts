import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The source files that git tracks: what a contributor tries out beside them is not held to the walls. */
export const tracked = spawnSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' })
  .stdout.split('\0')
  .filter((name) => /\.(?:ts|[cm]?js)$/.test(name) && existsSync(join(root, name)));

/** The source files below a folder; paths are from the project's root. */
export function sources(folder: string): string[] {
  return tracked.filter((name) => name.startsWith(join(folder, '/')));
}

/** What a file imports: paths from the project's root for its own files, names for packages. */
export function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  const statements = text.matchAll(/\b(?:from|import|require)\b\s*(?:['"]|\(\s*['"`])([^'"`]+)['"`]/g);
  return [...statements].map(([, target = '']) =>
    target.startsWith('.') ? relative(root, resolve(root, dirname(file), target)) : target,
  );
}
