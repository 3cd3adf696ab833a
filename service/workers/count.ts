import { readFile, stat } from 'node:fs/promises';
import { interpolate } from '../../config/interpolate.ts';
import { readConfigFile } from '../../config/yaml.ts';
import type { Environment } from '../../plugins-sdk/signing/variables.ts';

/** Processes of one service. */
export const MOST_WORKERS = 256;

async function isPipe(file: string): Promise<boolean> {
  return (await stat(file).catch(() => undefined))?.isFIFO() === true;
}

/**
 * The number in a config, which is looked at without loading it: plugins are none of the business of who only supervises. What is
 * wrong with the config, this number included, is found by the process that loads it first.
 */
export async function configuredWorkers(file: string, env: Environment): Promise<number> {
  try {
    // A pipe can be read once.
    if ((await isPipe(file)) || !(await readFile(file, 'utf8')).includes('workers')) return 1;
    const { server } = Object(interpolate(await readConfigFile(file), env).value);
    return Number(Object(server).workers);
  } catch {
    return 1;
  }
}

/** Each worker reads the files. @throws Error that names one that can be read once. */
export async function refusePipes(files: readonly string[]): Promise<void> {
  for (const file of files) {
    if (await isPipe(file)) throw new Error(`${file}: is a pipe, which several workers cannot read: give a file`);
  }
}
