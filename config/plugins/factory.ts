import { isClass } from './module-exports.ts';
import { PluginProblem } from './plugin-problem.ts';

/** What makes a plugin out of its config. */
export type Factory = (config: unknown) => unknown;

/** @throws PluginProblem for a class */
export function isFactory(value: unknown): value is Factory {
  if (isClass(value))
    throw new PluginProblem('the default export is a class: export {name, hooks}, or a function that returns them');
  return typeof value === 'function';
}

export async function callFactory(factory: Factory, config: unknown): Promise<unknown> {
  return await factory(config);
}
