import { lstat, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '../../service/text.ts';

/** A folder for each kind of plugin. */
const TEMPLATES = new URL('./template/', import.meta.url);
/** The name that stands in a template for the one to come. */
const STAND_IN = 'my-plugin';
const SUFFIXES = ['.ts', '.test.ts'];

/** Why nothing was written, in one line. */
class UnwritablePlugin extends Error {}

export async function kinds(): Promise<string[]> {
  return (await readdir(TEMPLATES)).toSorted();
}

/** What a config file needs to use a plugin, as the comment at the top of its file has it. */
export function usageOf(plugin: string): string {
  const [, yaml = ''] = /^ \* ```yaml\n(.*?)^ \* ```$/ms.exec(plugin) ?? [];
  return yaml.replace(/^ \* /gm, '');
}

/**
 * Writes `<name>.ts` and `<name>.test.ts` into a folder, which is made where there is none.
 *
 * @param kind one of {@link kinds}.
 * @returns their paths.
 * @throws UnwritablePlugin when one of them exists already or cannot be written; then neither was written.
 */
export async function writePlugin(name: string, folder: string, kind: string): Promise<string[]> {
  const files = SUFFIXES.map((suffix) => ({ from: `${STAND_IN}${suffix}`, to: join(folder, `${name}${suffix}`) }));
  const written: string[] = [];
  try {
    await mkdir(folder, { recursive: true }).catch((error: unknown) => refuseFolder(folder, error));
    for (const { to } of files) await refuseExisting(to);
    for (const { from, to } of files) {
      const text = await readFile(new URL(`${kind}/${from}`, TEMPLATES), 'utf8');
      await writeFile(to, text.replaceAll(STAND_IN, name), { flag: 'wx' }).catch((error: unknown) => refuse(to, error));
      written.push(to);
    }
    return written;
  } catch (error) {
    for (const path of written) await rm(path);
    throw error;
  }
}

/** Also a symbolic link that leads nowhere is there. */
async function refuseExisting(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found !== undefined) throw new UnwritablePlugin(`${path}: exists already, nothing was written`);
}

const reasons: Readonly<Record<string, string>> = {
  EEXIST: 'exists already, nothing was written',
  EACCES: 'cannot be written, permission denied',
  EPERM: 'cannot be written, permission denied',
  EROFS: 'cannot be written, the file system is read-only',
};

function refuseFolder(path: string, error: unknown): never {
  if (codeOf(error) === 'EEXIST' || codeOf(error) === 'ENOTDIR') throw new UnwritablePlugin(`${path}: is no folder`);
  return refuse(path, error);
}

function refuse(path: string, error: unknown): never {
  const code = codeOf(error);
  throw new UnwritablePlugin(`${path}: ${reasons[code] ?? `cannot be written (${code})`}`);
}
