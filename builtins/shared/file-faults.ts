import { open, realpath } from 'node:fs/promises';

const MEANINGS: Readonly<Record<string, string>> = {
  ENOENT: 'its directory does not exist: create it, or change path',
  ENOTDIR: 'a part of its path is no directory: change path',
  EACCES: 'let the user of this process read and write it and its directory',
  EPERM: 'let the user of this process read and write it and its directory',
  EROFS: 'its file system is read-only: set a path that can be written',
  ENOSPC: 'no room is left on its disk: make room',
  EDQUOT: 'the disk quota is used up: make room',
  EISDIR: 'it is a directory: add the name of a file',
  ENXIO: 'it is no regular file: change path',
};

/** Returns the code of a system error, such as `ENOSPC`; for other errors their message. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return 'code' in error ? String(error.code) : error.message;
}

/**
 * Makes a file if there is none, and runs a function that uses it.
 * @param field the config field that names the file.
 * @throws Error with advice in place of a system error.
 */
export async function explained<T>(field: string, path: string, run: (real: string) => Promise<T>): Promise<T> {
  try {
    // Its errors are clearer than those of libraries.
    return await run(await realFile(field, path));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    const code = codeOf(error);
    const at = 'path' in error ? error.path : path;
    throw new Error(`${field}: ${at} cannot be used (${code}): ${MEANINGS[code] ?? error.message}`);
  }
}

/**
 * Makes a file if there is none.
 * @returns its real path, with links resolved, so that two names of one file are not taken for two files.
 * @throws Error for anything but a regular file.
 */
async function realFile(field: string, path: string): Promise<string> {
  const file = await open(path, 'a+', 0o600);
  try {
    if (!(await file.stat()).isFile()) throw new Error(`${field}: ${path} is no regular file: change path`);
    return await realpath(path);
  } finally {
    await file.close();
  }
}
