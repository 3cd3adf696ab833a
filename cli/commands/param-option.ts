import { option, UsageError } from '../arguments.ts';

export const param = option('--param <name=text>', 'A parameter of the request', { many: true });

/** The name and the text of a parameter. @throws UsageError */
export function parameterOf(text: string): readonly [string, string] {
  const end = text.indexOf('=');
  if (end > 0) return [text.slice(0, end), text.slice(end + 1)];
  throw new UsageError(`option ${param.flags} must be a name and what to give it, such as symbol=ETH`);
}
