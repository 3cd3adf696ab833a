import { statSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { hookIntoImports } from './import.ts';
import { PluginProblem } from './plugin-problem.ts';

const NO_SUCH_MODULE = 'the package exports no such module';
const PROBLEMS: Readonly<Record<string, string>> = {
  ERR_INVALID_PACKAGE_CONFIG: 'the package has no readable package.json',
  ERR_PACKAGE_IMPORT_NOT_DEFINED: 'the package.json of the config file imports no such module',
};

/**
 * The URL that `import` of `name` would load in a module beside `configFile`, as node's own resolver says.
 *
 * @returns nothing where no such package is installed.
 * @throws PluginProblem
 */
export function resolvePackage(name: string, configFile: string): string | undefined {
  const url = resolve(name, pathToFileURL(configFile).href);
  if (url?.startsWith('node:')) throw new PluginProblem('is a module of Node.js');
  // That a file is not there is left to the import by the resolver.
  if (url !== undefined && !isFile(new URL(url))) throw new PluginProblem(NO_SUCH_MODULE);
  return url;
}

function resolve(name: string, from: string): string | undefined {
  hookIntoImports();
  try {
    // Without a flag node takes no other parent than this module; the hook puts `from` in its place.
    return import.meta.resolve(`plugin-package:?${new URLSearchParams({ name, from })}`);
  } catch (error) {
    const { code, message } = isRecord(error) ? error : {};
    const [packageName] = /^(?:@[^/]+\/)?[^/]+/.exec(name) ?? [];
    if (code === 'ERR_MODULE_NOT_FOUND' && String(message).includes(`package '${packageName}'`)) return undefined;
    throw new PluginProblem(PROBLEMS[String(code)] ?? NO_SUCH_MODULE);
  }
}

function isFile(url: URL): boolean {
  return url.protocol === 'file:' && statSync(url, { throwIfNoEntry: false })?.isFile() === true;
}
