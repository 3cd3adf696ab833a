import { statSync } from 'node:fs';
import { dirname, extname, isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { resolvePackage } from './package.ts';
import { PluginProblem } from './plugin-problem.ts';

const EXTENSIONS = new Set(['.ts', '.mts', '.js', '.mjs']);

/** The name of a package, perhaps with a subpath, or one that `imports` of a package.json defines. */
const PACKAGE = /^(?:#[^/]|(?:@[\w.~-]+\/)?[\w~-][\w.~-]*(?:\/.|$))/;

/**
 * The URL of the module that `source` names: a path relative to the config file, or a package installed for its folder.
 * What may be both, such as `plugins/one.js`, is a path if there is that file.
 *
 * @throws PluginProblem
 */
export function moduleUrl(source: string, configFile: string): string {
  const onlyPath = /^\.\.?[/\\]/.test(source) || isAbsolute(source);
  const perhapsPath = onlyPath || EXTENSIONS.has(extname(source));
  const path = resolve(dirname(configFile), source);
  if (perhapsPath && isFile(path)) {
    if (!EXTENSIONS.has(extname(path))) throw new PluginProblem('a plugin is a .ts, .mts, .js or .mjs file');
    return pathToFileURL(path).href;
  }
  const named = !onlyPath && PACKAGE.test(source);
  const url = named ? resolvePackage(source, configFile) : undefined;
  if (url !== undefined) return url;
  if (perhapsPath) throw new PluginProblem('there is no such file');
  throw new PluginProblem(named ? 'there is no such package' : 'is neither a path nor the name of a package');
}

/** Whether {@link moduleUrl} takes it for the name of a package, and not for a path. */
export function isPackage(source: string, configFile: string): boolean {
  const isPath = /^\.\.?[/\\]/.test(source) || isAbsolute(source) || source.startsWith('#');
  return !isPath && !isFile(resolve(dirname(configFile), source));
}

function isFile(path: string): boolean {
  return !path.includes('\0') && statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
