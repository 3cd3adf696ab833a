import { existsSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const REGISTER = 'signed-data-proxy/plugins-sdk/register';
const BIN = 'node_modules/.bin/signed-data-proxy';
const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/[/\\]$/, '');

/** What runs this very command line again for someone who stands in `folder`, short where npm knows it there. */
export function commandLine(folder: string): string {
  const program = join(root, 'cli/bin.js');
  const prefix = npmPrefix(folder);
  // The built package has no scripts.
  if (prefix === root && import.meta.url.endsWith('.ts')) return 'npm run -s cli --';
  const installed = prefix !== undefined && realPath(join(prefix, BIN)) === program;
  return installed ? 'npx signed-data-proxy' : `node ${shellWord(program)}`;
}

/** What node is to import before a plugin's test: by name where `folder` has this package, else by its address. */
export function registration(folder: string): string {
  const file = fileURLToPath(new URL('register.mjs', import.meta.url));
  try {
    if (createRequire(join(folder, 'any.js')).resolve(REGISTER) === file) return REGISTER;
  } catch {
    // It is not installed there.
  }
  return /[^\w./-]/.test(file) ? shellWord(pathToFileURL(file).href) : file;
}

/** One word of a POSIX shell, as it stands where nothing in it means anything to the shell. */
export function shellWord(text: string): string {
  return /[^\w@%+=:,./-]/.test(text) ? `'${text.replaceAll("'", `'\\''`)}'` : text;
}

/** The folder whose scripts and programs npm and npx take in `folder`. */
function npmPrefix(folder: string): string | undefined {
  const hasMark = existsSync(join(folder, 'package.json')) || existsSync(join(folder, 'node_modules'));
  if (hasMark) return realPath(folder);
  const parent = dirname(folder);
  return parent === folder ? undefined : npmPrefix(parent);
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
