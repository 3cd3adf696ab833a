import { statSync } from 'node:fs';
import { dirname, extname, isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { hookIntoImports } from './import.ts';
import { PluginProblem } from './plugin-problem.ts';

const EXTENSIONS = new Set(['.ts', '.mts', '.js', '.mjs']);

/** Matches the name of a package, perhaps with a subpath, or a name that `imports` of a package.json defines. */
const PACKAGE = /^(?:#[^/]|(?:@[\w.~-]+\/)?[\w~-][\w.~-]*(?:\/.|$))/;

/**
 * Resolves the module that `source` names: a path relative to the config file, or a package installed for its folder.
 * A source that may be both, such as `plugins/one.js`, is a path if there is such a file.
 *
 * @returns its URL, and whether the source is the name of a package.
 * @throws PluginProblem
 */
export function resolveSource(source: string, configFile: string) {
  const onlyPath = /^\.\.?[/\\]/.test(source) || isAbsolute(source);
  const perhapsPath = onlyPath || EXTENSIONS.has(extname(source));
  const path = resolve(dirname(configFile), source);
  if (perhapsPath && isFile(path)) {
    if (!EXTENSIONS.has(extname(path))) throw new PluginProblem('a plugin is a .ts, .mts, .js or .mjs file');
    return { url: pathToFileURL(path).href, isPackage: false };
  }
  const named = !onlyPath && PACKAGE.test(source);
  const url = named ? resolvePackage(source, configFile) : undefined;
  if (url !== undefined) return { url, isPackage: !source.startsWith('#') };
  if (perhapsPath) throw new PluginProblem('there is no such file');
  throw new PluginProblem(named ? 'there is no such package' : 'is neither a path nor the name of a package');
}

const NO_SUCH_MODULE = 'the package exports no such module';
const PROBLEMS: Readonly<Record<string, string>> = {
  ERR_INVALID_PACKAGE_CONFIG: 'the package has no readable package.json',
  ERR_PACKAGE_IMPORT_NOT_DEFINED: 'the package.json of the config file imports no such module',
};

/**
 * Returns the URL that `import` of `name` would load in a module beside `configFile`, found by node's own resolver.
 *
 * @returns `undefined` if no such package is installed.
 * @throws PluginProblem
 */
function resolvePackage(name: string, configFile: string): string | undefined {
  const url = resolved(name, pathToFileURL(configFile).href);
  if (url?.startsWith('node:')) throw new PluginProblem('is a module of Node.js');
  // The resolver does not check that the file exists.
  if (url !== undefined && !(url.startsWith('file:') && isFile(new URL(url)))) throw new PluginProblem(NO_SUCH_MODULE);
  return url;
}

function resolved(name: string, from: string): string | undefined {
  hookIntoImports();
  try {
    // Without a flag, node resolves only from this module. The hook puts `from` in its place.
    return import.meta.resolve(`plugin-package:?${new URLSearchParams({ name, from })}`);
  } catch (error) {
    const { code, message } = isRecord(error) ? error : {};
    const [packageName] = /^(?:@[^/]+\/)?[^/]+/.exec(name) ?? [];
    if (code === 'ERR_MODULE_NOT_FOUND' && String(message).includes(`package '${packageName}'`)) return undefined;
    throw new PluginProblem(PROBLEMS[String(code)] ?? NO_SUCH_MODULE);
  }
}

function isFile(path: string | URL): boolean {
  return !String(path).includes('\0') && statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
