type Next = (specifier: string, context: object) => unknown;

/** @param url a module of the service that runs; default this one. */
export function initialize(url?: string): void;
export function resolve(specifier: string, context: { readonly parentURL?: string }, next: Next): unknown;
