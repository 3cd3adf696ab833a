/** Customization hook (node:module): marks the program that node runs as an ES module, for `plugin-as-module.mjs`. */
export function resolve(specifier, context, next) {
  const isProgram = context.parentURL === undefined && /^file:.*\.[jt]s$/.test(specifier);
  return next(isProgram ? `${specifier}#module` : specifier, context);
}
