import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '../../service/text.ts';

/** The folder of templates, with a folder for each kind of plugin. */
const TEMPLATES = new URL('./template/', import.meta.url);
/** The placeholder for the plugin's name in templates. */
const STAND_IN = 'my-plugin';
const SUFFIXES = ['.ts', '.test.ts'];

/** Returns the kinds of plugins that there are templates for. */
export async function kinds(): Promise<string[]> {
  return (await readdir(TEMPLATES)).toSorted();
}

/** Returns the YAML that a config file needs for a plugin, from the comment at the top of the plugin. */
export function usageOf(plugin: string): string {
  const [, yaml = ''] = /^ \* ```yaml\n(.*?)^ \* ```$/ms.exec(plugin) ?? [];
  return yaml.replace(/^ \* /gm, '');
}

/**
 * Writes `<name>.ts` and `<name>.test.ts` into a folder, which is made if there is none.
 *
 * @param kind one of {@link kinds}.
 * @returns their paths.
 * @throws Error when one of them exists already or cannot be written; then neither is left.
 */
export async function writePlugin(name: string, folder: string, kind: string): Promise<string[]> {
  const files = SUFFIXES.map((suffix) => join(folder, `${name}${suffix}`));
  const written: string[] = [];
  let at = folder;
  try {
    await mkdir(folder, { recursive: true });
    for (const [index, file] of files.entries()) {
      at = file;
      const template = new URL(`${kind}/${STAND_IN}${SUFFIXES[index]}`, TEMPLATES);
      await writeFile(file, (await readFile(template, 'utf8')).replaceAll(STAND_IN, name), { flag: 'wx' });
      written.push(file);
    }
    return files;
  } catch (error) {
    for (const path of written) await rm(path);
    const code = codeOf(error);
    throw new Error(`${at}: ${REASONS[code] ?? `cannot be written (${code})`}`);
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EEXIST: 'exists already, nothing was written',
  ENOTDIR: 'is no folder',
  EACCES: 'cannot be written, permission denied',
  EROFS: 'cannot be written, the file system is read-only',
};
