import { randomBytes } from 'node:crypto';
import { chmod, chown, lstat, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { loadConfig } from '../../config/index.ts';
import { parseConfig, readConfigFile, type Tree } from '../../config/yaml.ts';
import { definitions } from '../../service/index.ts';
import { readEnvironment, userPath } from '../../service/surroundings.ts';
import { complain, print } from '../../service/terminal.ts';
import { codeOf } from '../../service/text.ts';
import { type Given, suggestion, UsageError } from '../arguments.ts';
import type { Conversion } from '../import/convert.ts';
import { METHODS } from '../import/document.ts';
import { importDocument } from '../import/index.ts';
import { leftOutLines } from '../import/left-out.ts';
import { merge } from '../import/merge.ts';
import { isUrl, nameOfSource, readDocument } from '../import/read.ts';
import { emptyText } from '../import/write.ts';
import { printJson } from '../json-output.ts';

const MAX_CONFIG = 1024 * 1024;

/** Makes a config of an OpenAPI document: a new file, additions to an existing one, or text on stdout. */
export async function importOpenApi(given: Given, source: string): Promise<void> {
  const out = given.optional('out');
  const file = out === undefined ? undefined : userPath(out);
  const before = await existing(file, out, given);
  const isJson = given.flag('json');
  // Read only for proxy settings: the result depends on the document alone.
  await readEnvironment(given.optional('env'));
  const imported = await imports(given, source);
  const { text, added, kept } = await naming(out, () => configText(imported, file, before));
  const notes = [...imported.remarks, ...kept];
  if (!isJson) await complain('note', [...notes, `${added} ${added === 1 ? 'endpoint' : 'endpoints'}`]);
  if (file !== undefined) await save(file, text, before !== undefined);
  const made = file === undefined ? { config: text } : { file };
  if (isJson) await printJson({ ok: true, ...made, added, notes, leftOut: imported.leftOut });
  else if (file === undefined) await print(text);
}

/** Puts the file or URL before the message of an error. */
async function naming<T>(place: string | undefined, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    // Findings name their files already.
    if (place === undefined || !(error instanceof Error) || 'lines' in error) throw error;
    throw new Error(`${place}: ${error.message}`);
  }
}

/** Imports a document, and prints the parts that are left out. @throws Error when nothing can be imported. */
async function imports(given: Given, source: string): Promise<Conversion> {
  const options = optionsOf(given, source);
  const name = nameOfSource(source);
  const tree = await naming(name, () => readDocument(isUrl(source) ? source : userPath(source)));
  const imported = await naming(name, () => importDocument(tree, options));
  const lines = leftOutLines(imported.leftOut);
  if (!given.flag('json')) await complain('left out', lines);
  if (imported.apis.length > 0) return imported;
  const error = new Error(`${name}: ${nothingIn(tree, lines)}`);
  throw given.flag('json') ? Object.assign(error, { lines: [...lines, error.message] }) : error;
}

/** @throws UsageError */
function optionsOf(given: Given, source: string) {
  const url = given.optional('url');
  if (url !== undefined && !(/^https?:/i.test(url) && URL.canParse(url)))
    throw new UsageError('option --url <url> must be the base of the upstream, such as https://api.example.com/v1');
  const methods = given.all('only').flatMap(methodsIn);
  const patterns = given.all('include').map(patternOf);
  const wants = (method: string, path: string, name: string) =>
    (methods.length === 0 || methods.includes(method)) &&
    (patterns.length === 0 || patterns.some((pattern) => pattern.test(path) || pattern.test(name)));
  return { url, base: isUrl(source) ? source : undefined, wants };
}

/** Reads the methods of `--only`. @throws UsageError for an unknown method or none, which would silently select nothing or all. */
function methodsIn(text: string): string[] {
  const named = text.toUpperCase().match(/[^\s,]+/g) ?? [];
  const wrong = named.length === 0 ? text : named.find((word) => !METHODS.includes(word));
  if (wrong === undefined) return named;
  throw new UsageError(
    `option --only <methods> takes methods such as GET,POST, not ${wrong}${suggestion(wrong, METHODS)}`,
  );
}

/** Returns the pattern of a path or name, in which `*` is any text. */
function patternOf(text: string): RegExp {
  const parts = text.split(/\*+/).map((part) => part.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's');
}

/** Returns the text of the output file; undefined if there is none. @throws Error where it may not be added to. */
async function existing(file: string | undefined, out: string | undefined, given: Given): Promise<string | undefined> {
  const isMerged = given.flag('merge');
  if (file === undefined) {
    if (isMerged) throw new UsageError('option --merge needs --out <file>, the config to add to');
    return undefined;
  }
  const about = await lstat(file).catch(() => undefined);
  if (about === undefined) return undefined;
  if (about.isSymbolicLink()) throw new Error(`${out} is a symbolic link: name the file that it leads to`);
  if (!isMerged) throw new Error(`${out} is there: add what it lacks with --merge, or name another file`);
  await readConfigFile(file);
  return readFile(file, 'utf8');
}

function nothingIn(tree: Tree, leftOut: readonly string[]): string {
  if (leftOut.length > 0) return 'no endpoint can be made of it, for the reasons above';
  const paths = Object.keys(Object(tree.paths)).length;
  return paths === 0 ? 'the document has no paths' : 'no operation of the document is wanted by --only and --include';
}

async function configText(imported: Conversion, file = '/config.yaml', before?: string) {
  const made = merge(before ?? emptyText(imported), imported);
  if (Buffer.byteLength(made.text) > MAX_CONFIG)
    throw new Error(
      `the config would be larger than 1 MiB, with ${made.added} endpoints added: choose some with --only and --include`,
    );
  // Loads the new config as the service will, to find faults before it is written.
  await loadConfig({ file, tree: parseConfig(made.text, file), env: {}, builtins: definitions(), allowUnset: true });
  return made;
}

/** Writes the config. A new file never replaces another one. A merged file is replaced as a whole, and keeps mode and owner. */
async function save(file: string, text: string, isThere: boolean): Promise<void> {
  const draft = isThere ? `${file}.${randomBytes(6).toString('hex')}` : file;
  try {
    await writeFile(draft, text, { flag: 'wx', mode: isThere ? 0o600 : 0o666 });
    if (draft === file) return;
    const { mode, uid, gid } = await lstat(file);
    // If root adds to a service's file, the service must still be able to read it.
    await chown(draft, uid, gid).catch(() => undefined);
    await chmod(draft, mode & 0o777);
    await rename(draft, file);
  } catch (error) {
    const code = codeOf(error);
    // On a full disk the draft is half a config. After EEXIST the file is not this command's.
    if (code !== 'EEXIST') await rm(draft, { force: true });
    throw new Error(`${file} cannot be written: ${code}`);
  }
}
