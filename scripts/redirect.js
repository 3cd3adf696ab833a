/**
 * Module hooks that send some bare specifiers in the project's own modules to files. Plugins, and packages, get what is
 * installed for them. https://nodejs.org/api/module.html#customization-hooks
 */

/** URL of the project's folder. */
let root = '';

/** @type {Record<string, string>} URLs by specifier */
let targets = {};

/** @param {{root: string, targets: Record<string, string>}} data */
export function initialize(data) {
  ({ root, targets } = data);
}

/** @type {import('node:module').ResolveHook} */
export function resolve(specifier, context, nextResolve) {
  const url = Object.hasOwn(targets, specifier) && isOwn(context.parentURL) ? targets[specifier] : undefined;
  return url === undefined ? nextResolve(specifier, context) : { url, format: 'module', shortCircuit: true };
}

/** @param {string | undefined} importer */
function isOwn(importer) {
  if (!importer?.startsWith(root)) return false;
  const path = importer.slice(root.length);
  return OWN.some((folder) => path.startsWith(folder));
}

const OWN = ['kernel/', 'builtins/', 'plugins-sdk/', 'config/', 'cli/', 'verify/'];
