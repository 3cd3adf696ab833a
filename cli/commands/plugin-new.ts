import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { definitions } from '../../service/index.ts';
import { userDirectory, userPath } from '../../service/surroundings.ts';
import { print } from '../../service/terminal.ts';
import { codeOf } from '../../service/text.ts';
import { type Given, UsageError } from '../arguments.ts';

/** The folder of templates, with a folder for each kind of plugin. */
const TEMPLATES = new URL('../plugin/template/', import.meta.url);
/** The placeholder for the plugin's name in templates. */
const STAND_IN = 'my-plugin';
const SUFFIXES = ['.ts', '.test.ts'];
const REGISTER = 'signed-data-proxy/plugins-sdk/register';
const LONGEST_NAME = 64;
/** The default kind: a plugin of the six hooks, without `setup`. */
const SIMPLEST = 'hooks';

/** Writes a plugin and its test, and prints the next steps. */
export async function newPlugin(given: Given, name: string): Promise<void> {
  checkName(name);
  const kind = given.optional('kind') ?? SIMPLEST;
  const known = await kinds();
  if (!known.includes(kind)) throw new UsageError(`option --kind <kind>: "${kind}" is none of ${known.join(', ')}`);
  const files = await writePlugin(name, userPath(given.optional('dir') ?? '.'), kind);
  const folder = userDirectory();
  const paths = files.map((file) => relative(folder, file));
  // Node 22 removes `./` from a test's path, and would then read a leading `-` as an option.
  const [, test = ''] = paths.map((path, i) => shellWord(path.startsWith('-') ? (files[i] ?? '') : path));
  const usage = usageOf(await readFile(files[0] ?? '', 'utf8')).replace(/^(?=.)/gm, '  ');
  await print(`${paths.join('\n')}

Run its test:
  node --import ${registration(folder)} --test ${test}

Use it, in a config file beside it:
${usage}`);
}

/** Checks the plugin's name, which its files get, too. @throws UsageError */
function checkName(name: string): void {
  if (!/^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/.test(name) || name.length > LONGEST_NAME) {
    throw new UsageError(
      `the name of a plugin is lower-case words with dashes between them, such as price-floor, of ${LONGEST_NAME} characters at most`,
    );
  }
  if (definitions().some((builtin) => builtin.name === name)) {
    throw new UsageError(`the name "${name}" is that of a built-in plugin`);
  }
}

/** Returns the kinds of plugins that there are templates for. */
async function kinds(): Promise<string[]> {
  return (await readdir(TEMPLATES)).toSorted();
}

/** Returns the YAML that a config file needs for a plugin, from the comment at the top of the plugin. */
function usageOf(plugin: string): string {
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
async function writePlugin(name: string, folder: string, kind: string): Promise<string[]> {
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
    const reason = code === 'EEXIST' ? 'exists already, nothing was written' : `cannot be written: ${code}`;
    throw new Error(`${at}: ${reason}`);
  }
}

/** Returns what node must import before a plugin's test: a package name if `folder` has this package, else a file. */
function registration(folder: string): string {
  const file = fileURLToPath(new URL('../plugin/register.mjs', import.meta.url));
  try {
    if (createRequire(join(folder, 'any.js')).resolve(REGISTER) === file) return REGISTER;
  } catch {
    // The package is not installed there.
  }
  return /[^\w./-]/.test(file) ? shellWord(pathToFileURL(file).href) : file;
}

/** Quotes a word for a POSIX shell, if it needs quotes. */
function shellWord(text: string): string {
  return /[^\w@%+=:,./-]/.test(text) ? `'${text.replaceAll("'", `'\\''`)}'` : text;
}
