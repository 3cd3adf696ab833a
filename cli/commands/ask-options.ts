import { type OptionSpec, UsageError } from '../arguments.ts';

/** Options of the command `ask`; `try` has parameters, too. */

export const operator: OptionSpec = {
  long: 'from',
  value: 'url=address',
  required: true,
  many: true,
  description: 'An operator: the base of its service, and the address that signs there',
};
export const param: OptionSpec = {
  long: 'param',
  value: 'name=text',
  many: true,
  description: 'A parameter of the request',
};
export const k: OptionSpec = {
  long: 'k',
  value: 'n',
  description: 'Good answers that there must be (default: one of every operator)',
};
export const maxDeviation: OptionSpec = {
  long: 'max-deviation',
  value: 'fraction',
  description: 'Refuse a value further from the median, such as 0.01',
};
export const namingConfig: OptionSpec = {
  short: 'c',
  long: 'config',
  value: 'file',
  description: 'YAML config file that has the endpoint of that name (default: the operators say which)',
};

/** The name and the text of a parameter. @throws UsageError */
export function parameterOf(text: string): readonly [string, string] {
  const end = text.indexOf('=');
  if (end > 0) return [text.slice(0, end), text.slice(end + 1)];
  throw new UsageError('option --param <name=text> must be a name and what to give it, such as symbol=ETH');
}
