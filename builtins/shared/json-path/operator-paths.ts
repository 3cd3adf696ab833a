import { splitList } from './brackets.ts';
import { PathError } from './budget.ts';
import { type CompiledPath, compilePath } from './index.ts';
import { mistakeIn } from './mistakes.ts';
import { Placeholders } from './placeholders.ts';

/**
 * Compiles an operator's list of paths, in which `{name}` is a placeholder for a parameter's value as sent upstream.
 *
 * @param declared the parameters' names.
 * @throws PathError
 */
export function operatorPaths(text: string, declared: readonly string[]): readonly CompiledPath[] {
  const placeholders = new Placeholders();
  const paths = splitList(placeholders.mark(text, declared));
  const mistake = paths.map((path) => mistakeIn(path, declared)).find((found) => found !== undefined);
  if (mistake !== undefined) throw new PathError(mistake);
  return paths.map((path) => compilePath(path, 'operator', placeholders));
}
