import nodeModule, { register } from 'node:module';
import { pathToFileURL } from 'node:url';
import { syntaxFault } from './isolate/bundle.ts';
import { exportsOf, NO_DEFAULT, type PluginModule } from './module-exports.ts';
import { initialize, resolve } from './plugin-as-module.mjs';
import { PluginProblem } from './plugin-problem.ts';

let hooked = false;
/** From source, modules are either run by tsx or, without it, bundled into others. */
let typeScript = import.meta.filename.endsWith('.ts');

/**
 * Has `plugin-as-module.mjs` take part in every import from now on. Where node takes hooks of this thread, from 22.15 on, these come before
 * all that are in another; tsx has its own here.
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
 * Where no package.json says `"type": "module"`, tsx makes a CommonJS module of a `.ts` or `.js` file, and another copy
 * of everything that it imports. The SDK, which awaits at its top level, could not be loaded at all.
 */
async function asModule(url: string): Promise<string> {
  // From source the service itself runs under tsx; once built, TypeScript is a matter of its plugins only.
  if (/\.[cm]?ts$/.test(url) && !typeScript) {
    typeScript = true;
    (await import('tsx/esm/api')).register();
    // Of all hooks the one that is registered last comes first.
    hooked = false;
  }
  hookIntoImports();
  return /\.[jt]s$/.test(url) ? `${url}#module` : url;
}

/** @throws PluginProblem, and whatever the module throws while it is evaluated. */
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
