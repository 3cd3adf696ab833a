type Next = (specifier: string, context: object) => unknown;

/** @param urls of a module of the service that runs: as it runs, and as it lies in the package; default this one. */
export function initialize(urls?: { readonly own: string; readonly source: string }): void;
export function resolve(specifier: string, context: { readonly parentURL?: string }, next: Next): unknown;
