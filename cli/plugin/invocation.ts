import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const REGISTER = 'signed-data-proxy/plugins-sdk/register';

/** Returns what node must import before a plugin's test: a package name if `folder` has this package, else a file. */
export function registration(folder: string): string {
  const file = fileURLToPath(new URL('register.mjs', import.meta.url));
  try {
    if (createRequire(join(folder, 'any.js')).resolve(REGISTER) === file) return REGISTER;
  } catch {
    // The package is not installed there.
  }
  return /[^\w./-]/.test(file) ? shellWord(pathToFileURL(file).href) : file;
}

/** Quotes a word for a POSIX shell, if it needs quotes. */
export function shellWord(text: string): string {
  return /[^\w@%+=:,./-]/.test(text) ? `'${text.replaceAll("'", `'\\''`)}'` : text;
}
