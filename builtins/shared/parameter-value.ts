import type { Parameter } from '../../plugins-sdk/config.ts';
import { type Json, type Parameters, Refusal } from '../../plugins-sdk/index.ts';

/** The error text for a number that a double would round. */
export const INEXACT = 'send this number as a string';

/** The error text for JSON that is nested too deeply to be passed on. */
export const TOO_DEEP = 'Request body is nested too deeply';

/** Returns the error text for a value that no request may have. */
export function invalidParameter(name: string, why?: string): string {
  return `Invalid parameter: ${name}${why === undefined ? '' : ` (${why})`}`;
}

/** The part of a declared parameter that decides about an absent value. */
type Declared = Pick<Parameter, 'name' | 'in' | 'default'>;

/** Returns whether a request gives no value; `null` counts as none, except in a body. */
export function isLeftOut({ name, in: place }: Declared, given: Parameters): boolean {
  const value = Object.hasOwn(given, name) ? given[name] : undefined;
  return value === undefined || (value === null && place !== 'body');
}

/** Returns the client's value of a parameter, or its default. */
export function valueIn(parameter: Declared, given: Parameters): Json | undefined {
  return isLeftOut(parameter, given) ? parameter.default : given[parameter.name];
}

/** Returns the value to send upstream. @throws Refusal 400 for a value that the parameter's map does not hold */
export function sentValue({ name, map }: Pick<Parameter, 'name' | 'map'>, value: Json | undefined): Json | undefined {
  if (map === undefined || value === undefined) return value;
  if (typeof value === 'string' && Object.hasOwn(map, value)) return map[value];
  throw new Refusal(400, invalidParameter(name), { reason: `parameter "${name}" is not in its map` });
}
