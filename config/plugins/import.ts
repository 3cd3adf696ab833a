import { register } from 'node:module';
import { pathToFileURL } from 'node:url';
import { PluginProblem } from '../../plugins-sdk/plugin-problem.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { within } from '../../plugins-sdk/within.ts';

/** What a plugin's module exports. */
export interface PluginModule {
  readonly plugin: unknown;
  readonly configSchema: unknown;
  readonly keys: unknown;
}

let hooked = false;
/** From source, modules are either run by tsx or, without it, bundled into others. */
let typeScript = import.meta.filename.endsWith('.ts');

/** Has `as-module.mjs` take part in every import from now on. */
export function hookIntoImports(): void {
  if (!hooked) register('./as-module.mjs', import.meta.url, { data: pathToFileURL(import.meta.filename).href });
  hooked = true;
}

/**
 * Where no package.json says `"type": "module"`, tsx makes a CommonJS module of a `.ts` or `.js` file, and another copy
 * of everything that it imports: the SDK, which awaits at its top level, could not be loaded at all.
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
  const namespace: unknown = await import(await asModule(url));
  const exports = isRecord(namespace) ? namespace : {};
  // A CommonJS module made from an ES module has its exports one level further down.
  const inner = isRecord(exports.default) && exports.default.__esModule === true ? exports.default : exports;
  if (inner.default === undefined) throw new PluginProblem('the module has no default export');
  return { plugin: inner.default, configSchema: inner.configSchema, keys: inner.keys };
}

/**
 * The result of work that is somebody else's, if it comes in time.
 * @throws PluginProblem
 */
export function inTime<T>(work: Promise<T>, milliseconds: number): Promise<T> {
  return within(milliseconds, work, () => {
    throw new PluginProblem(`is not ready after ${milliseconds} ms`);
  });
}
