import { resolve } from 'node:path';
import { parse } from 'dotenv';
import { decode, readBounded, UnreadableFile } from './files.ts';

export interface EnvironmentOptions {
  /** Where `.env` is looked for, and what a relative `envFile` is relative to. */
  readonly cwd: string;
  /** Read instead of `.env`; it must exist. */
  readonly envFile?: string;
  /** The real environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * The variables that a configuration may refer to. They are those of the real environment, and below them those of `.env` (when
 * there is such a file) or of `envFile`. Changes nothing in `process.env`.
 *
 * @throws ConfigErrors naming the file that cannot be read, or is not UTF-8: a value would be another one.
 */
export async function loadEnvironment(options: EnvironmentOptions): Promise<Record<string, string | undefined>> {
  const { cwd, envFile, env } = options;
  const file = resolve(cwd, envFile ?? '.env');
  const fromFile = parse(decode(await read(file, envFile === undefined), file));
  const real = Object.entries(env).filter(([, value]) => value !== undefined);
  return Object.fromEntries([...Object.entries(fromFile), ...real]);
}

async function read(file: string, optional: boolean): Promise<Buffer> {
  try {
    return await readBounded(file);
  } catch (error) {
    // A directory `.env` is somebody's Python environment, not ours.
    const absent = error instanceof UnreadableFile && (error.code === 'ENOENT' || error.code === 'EISDIR');
    if (optional && absent) return Buffer.alloc(0);
    throw error;
  }
}
