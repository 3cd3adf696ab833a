import { statSync } from 'node:fs';
import { dirname, extname, isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { resolvePackage } from './package.ts';
import { PluginProblem } from './problem.ts';

const EXTENSIONS = new Set(['.ts', '.mts', '.js', '.mjs']);

/**
 * The URL of the module that `source` names: a path relative to the config file, or a package installed for its folder.
 * @throws PluginProblem
 */
export function moduleUrl(source: string, configFile: string): string {
  return pathToFileURL(isPath(source) ? filePath(source, configFile) : resolvePackage(source, configFile)).href;
}

function isPath(source: string): boolean {
  return /^\.\.?[/\\]/.test(source) || isAbsolute(source) || EXTENSIONS.has(extname(source));
}

function filePath(source: string, configFile: string): string {
  const path = resolve(dirname(configFile), source);
  if (source.includes('\0') || statSync(path, { throwIfNoEntry: false })?.isFile() !== true) {
    throw new PluginProblem('there is no such file');
  }
  if (!EXTENSIONS.has(extname(path))) throw new PluginProblem('a plugin is a .ts, .mts, .js or .mjs file');
  return path;
}
