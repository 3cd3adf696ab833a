import { readFile, stat } from 'node:fs/promises';
import { interpolate } from '../../config/interpolate.ts';
import { readConfigFile } from '../../config/yaml.ts';
import type { Environment } from '../../plugins-sdk/signing/variables.ts';

/** The most worker processes of one service. */
export const MOST_WORKERS = 256;

/**
 * Reads the number of workers from a config without loading it: a process that only supervises must not run plugins.
 * Returns 1 for a file that cannot be read, and NaN without a number. The process that loads the config first reports faults.
 */
export async function configuredWorkers(file: string, env: Environment): Promise<number> {
  try {
    // A pipe can be read only once, by the service itself.
    if ((await stat(file)).isFIFO() || !(await readFile(file, 'utf8')).includes('workers')) return 1;
    const { server } = Object(interpolate(await readConfigFile(file), env).value);
    return Number(Object(server).workers);
  } catch {
    return 1;
  }
}
