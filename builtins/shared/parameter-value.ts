import type { Parameter } from '../../plugins-sdk/config.ts';
import { type Json, type Parameters, Refusal } from '../../plugins-sdk/index.ts';

/** Why a number is refused that a double would round. */
export const INEXACT = 'send this number as a string';

/** What is said of JSON with more levels than can be passed on. */
export const TOO_DEEP = 'Request body is nested too deeply';

/** What is said of a value that no request may have. */
export function invalidParameter(name: string, why?: string): string {
  return `Invalid parameter: ${name}${why === undefined ? '' : ` (${why})`}`;
}

/** What a declared parameter says of a value that a request does not give. */
type Declared = Pick<Parameter, 'name' | 'in' | 'default'>;

/** Whether a request gives no value: `null` counts as none, except in a body. */
export function isLeftOut({ name, in: place }: Declared, given: Parameters): boolean {
  const value = Object.hasOwn(given, name) ? given[name] : undefined;
  return value === undefined || (value === null && place !== 'body');
}

/** The client's value of a parameter, else its default. */
export function valueIn(parameter: Declared, given: Parameters): Json | undefined {
  return isLeftOut(parameter, given) ? parameter.default : given[parameter.name];
}

/** What is sent upstream for a value. @throws Refusal 400 for one that the parameter's map does not hold */
export function sentValue({ name, map }: Pick<Parameter, 'name' | 'map'>, value: Json | undefined): Json | undefined {
  if (map === undefined || value === undefined) return value;
  if (typeof value === 'string' && Object.hasOwn(map, value)) return map[value];
  throw new Refusal(400, invalidParameter(name), { reason: `parameter "${name}" is not in its map` });
}
