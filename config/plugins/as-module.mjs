/** Customization hook (node:module): a specifier that ends in `#module` is an ES module, whatever package it lies in. */
const MARK = '#module';

export async function resolve(specifier, context, next) {
  if (!specifier.endsWith(MARK)) return next(specifier, context);
  return { ...(await next(specifier.slice(0, -MARK.length), context)), format: 'module' };
}
