/** What a plugin's module exports. */
export interface PluginModule {
  readonly plugin: unknown;
  readonly configSchema: unknown;
  readonly keys: unknown;
}

export const NO_DEFAULT = 'the module has no default export';

/** @returns `plugin: undefined` when there is no default export. */
export function exportsOf(namespace: unknown): PluginModule {
  const exports = isObject(namespace) ? namespace : {};
  // A CommonJS module made from an ES module has its exports one level further down.
  const inner = isObject(exports.default) && exports.default.__esModule === true ? exports.default : exports;
  return { plugin: inner.default, configSchema: inner.configSchema, keys: inner.keys };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether it has to be called with `new`. */
export function isClass(value: unknown): boolean {
  return typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value));
}
