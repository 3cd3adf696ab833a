import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The source files below a folder; paths are from the project's root. */
export function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:ts|m?js)$/.test(name))
    .map((name) => join(folder, name));
}

/** What a file imports: paths from the project's root for its own files, names for packages. */
export function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  const statements = text.matchAll(/\b(?:from|import|require)\b\s*(?:['"]|\(\s*['"`])([^'"`]+)['"`]/g);
  return [...statements].map(([, target = '']) =>
    target.startsWith('.') ? relative(root, resolve(root, dirname(file), target)) : target,
  );
}
