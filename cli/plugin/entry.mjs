/** Customization hook (node:module): the program that node was asked to run is an ES module, as `plugin-as-module.mjs` understands it. */
export function resolve(specifier, context, next) {
  const isProgram = context.parentURL === undefined && /^file:.*\.[jt]s$/.test(specifier);
  return next(isProgram ? `${specifier}#module` : specifier, context);
}
