import { statSync } from 'node:fs';
import nodeModule, { register } from 'node:module';
import { dirname, extname, isAbsolute, resolve as resolvePath } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { syntaxFault } from './isolate/bundle.ts';
import { initialize, resolve } from './plugin-as-module.mjs';
import { PluginProblem } from './plugin-problem.ts';
import { exportsOf, NO_DEFAULT, type PluginModule } from './simple-plugin.ts';

let hooked = false;
/** Whether tsx is registered. It is from the start if it runs this source; built or bundled, this file ends in `.js`. */
let typeScript = import.meta.filename.endsWith('.ts');

/**
 * Adds the hooks of `plugin-as-module.mjs` to every later import. From 22.15 on, Node.js runs them in this thread, where tsx has
 * its own, and before all hooks of another thread.
 */
function hookIntoImports(): void {
  if (hooked) return;
  hooked = true;
  const own = pathToFileURL(import.meta.filename).href;
  const registerHooks: unknown = Reflect.get(nodeModule, 'registerHooks');
  const urls = { own, source: import.meta.url };
  initialize(urls);
  if (typeof registerHooks === 'function') registerHooks({ resolve });
  else register('./plugin-as-module.mjs', import.meta.url, { data: urls });
}

/**
 * Returns the URL by which a plugin is imported as an ES module. Where no package.json says `"type": "module"`, tsx would make a
 * CommonJS module of a `.ts` or `.js` file, and another copy of everything that it imports. The SDK, which uses top-level await,
 * could then not be loaded at all.
 */
async function asModule(url: string): Promise<string> {
  // From source the service itself runs under tsx. Once built, only plugins need it.
  if (/\.[cm]?ts$/.test(url) && !typeScript) {
    typeScript = true;
    (await import('tsx/esm/api')).register();
    // The hooks registered last run first, so ours have to be registered again.
    hooked = false;
  }
  hookIntoImports();
  return /\.[jt]s$/.test(url) ? `${url}#module` : url;
}

/** Imports a plugin's module. @throws PluginProblem without a default export, and any error of the module's evaluation. */
export async function importPlugin(url: string): Promise<PluginModule> {
  const module = exportsOf(await evaluate(url));
  if (module.plugin === undefined) throw new PluginProblem(NO_DEFAULT);
  return module;
}

async function evaluate(url: string): Promise<unknown> {
  try {
    return await import(await asModule(url));
  } catch (error) {
    const fault = error instanceof SyntaxError ? await syntaxFault(url) : undefined;
    throw fault === undefined ? error : new SyntaxError(fault);
  }
}

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
  const path = resolvePath(dirname(configFile), source);
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

/**
 * Returns the URL that `import` of `name` would load in a module beside `configFile`, found by node's own resolver.
 *
 * @returns `undefined` if no such package is installed.
 * @throws PluginProblem
 */
function resolvePackage(name: string, configFile: string): string | undefined {
  hookIntoImports();
  // Without a flag, node resolves only from this module. The hook puts `from` in its place.
  const query = new URLSearchParams({ name, from: pathToFileURL(configFile).href });
  try {
    const url = new URL(import.meta.resolve(`plugin-package:?${query}`));
    // The resolver does not check that the file exists.
    if (url.protocol === 'file:' && isFile(url)) return url.href;
  } catch (error) {
    const { code, message } = isRecord(error) ? error : {};
    const [packageName] = /^(?:@[^/]+\/)?[^/]+/.exec(name) ?? [];
    if (code === 'ERR_MODULE_NOT_FOUND' && String(message).includes(`package '${packageName}'`)) return undefined;
  }
  throw new PluginProblem('the package exports no such module');
}

function isFile(path: string | URL): boolean {
  return !String(path).includes('\0') && statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
