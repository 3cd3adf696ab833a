import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const REGISTER = 'signed-data-proxy/plugins-sdk/register';

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
