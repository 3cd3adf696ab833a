import { readFile, stat } from 'node:fs/promises';
import { interpolate } from '../../config/interpolate.ts';
import { readConfigFile } from '../../config/yaml.ts';
import type { Environment } from '../../plugins-sdk/signing/variables.ts';

/** The most worker processes of one service. */
export const MOST_WORKERS = 256;

async function isPipe(file: string): Promise<boolean> {
  return (await stat(file).catch(() => undefined))?.isFIFO() === true;
}

/**
 * Reads the number of workers from a config without loading it: a process that only supervises must not run plugins.
 * Returns 1 for a file that cannot be read, and NaN without a number. The process that loads the config first reports faults.
 */
export async function configuredWorkers(file: string, env: Environment): Promise<number> {
  try {
    // A pipe can be read only once, so it is left for the worker.
    if ((await isPipe(file)) || !(await readFile(file, 'utf8')).includes('workers')) return 1;
    const { server } = Object(interpolate(await readConfigFile(file), env).value);
    return Number(Object(server).workers);
  } catch {
    return 1;
  }
}

/** Refuses files that are pipes, since each worker reads the files. @throws Error that names the pipe. */
export async function refusePipes(files: readonly string[]): Promise<void> {
  for (const file of files) {
    if (await isPipe(file)) throw new Error(`${file}: is a pipe, which several workers cannot read: give a file`);
  }
}
