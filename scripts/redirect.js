/**
 * Module hooks that send some bare specifiers in the project's own modules to files. Plugins, and packages, get what is
 * installed for them. https://nodejs.org/api/module.html#customization-hooks
 */

/** @type {string[]} URLs of the folders whose modules are sent there */
let importers = [];

/** @type {Record<string, string>} URLs by specifier */
let targets = {};

/** @param {{importers: string[], targets: Record<string, string>}} data */
export function initialize(data) {
  ({ importers, targets } = data);
}

/** @type {import('node:module').ResolveHook} */
export function resolve(specifier, context, nextResolve) {
  const concerns = Object.hasOwn(targets, specifier) && importers.some((url) => context.parentURL?.startsWith(url));
  if (!concerns) return nextResolve(specifier, context);
  return { url: targets[specifier], format: 'module', shortCircuit: true };
}
