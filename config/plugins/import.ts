import nodeModule, { register } from 'node:module';
import { pathToFileURL } from 'node:url';
import { syntaxFault } from './isolate/bundle.ts';
import { exportsOf, NO_DEFAULT, type PluginModule } from './module-exports.ts';
import { initialize, resolve } from './plugin-as-module.mjs';
import { PluginProblem } from './plugin-problem.ts';

let hooked = false;
/** Whether tsx is registered. It is from the start if it runs this source; built or bundled, this file ends in `.js`. */
let typeScript = import.meta.filename.endsWith('.ts');

/**
 * Adds the hooks of `plugin-as-module.mjs` to every later import. From 22.15 on, Node.js runs them in this thread, where tsx has
 * its own, and before all hooks of another thread.
 */
export function hookIntoImports(): void {
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
