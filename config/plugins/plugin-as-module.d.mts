type Next = (specifier: string, context: object) => unknown;

/** Sets from where the hooks resolve. @param urls of a module of the running service, as it runs and in the package's source. */
export function initialize(urls?: { readonly own: string; readonly source: string }): void;
/** The hook `resolve` of node:module. */
export function resolve(specifier: string, context: { readonly parentURL?: string }, next: Next): unknown;
