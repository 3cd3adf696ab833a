import type { Json, Parameters } from '../../plugins-sdk/index.ts';
import type { Parameter } from '../../plugins-sdk/keys.ts';

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
