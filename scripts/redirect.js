/** Module hooks that send some bare specifiers to files: https://nodejs.org/api/module.html#customization-hooks */

/** @type {Record<string, string>} URLs by specifier */
let targets = {};

/** @param {Record<string, string>} data */
export function initialize(data) {
  targets = data;
}

/** @type {import('node:module').ResolveHook} */
export function resolve(specifier, context, nextResolve) {
  const url = Object.hasOwn(targets, specifier) ? targets[specifier] : undefined;
  return url === undefined ? nextResolve(specifier, context) : { url, format: 'module', shortCircuit: true };
}
