import { option, UsageError } from '../arguments.ts';

export const param = option('--param <name=text>', 'A parameter of the request', { many: true });

/** Names and texts of parameters. @throws UsageError for one that is none, or that is given twice, of which one would be lost. */
export function parametersIn(texts: readonly string[]): (readonly [string, string])[] {
  const names = new Set<string>();
  return texts.map((text) => {
    const end = text.indexOf('=');
    if (end < 1) throw new UsageError(`option ${param.flags} must be a name and what to give it, such as symbol=ETH`);
    const name = text.slice(0, end);
    if (names.has(name)) throw new UsageError(`option ${param.flags} gives "${name}" more than once`);
    names.add(name);
    return [name, text.slice(end + 1)];
  });
}
