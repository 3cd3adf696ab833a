import { Check } from 'typebox/value';
import type { SchemaNode } from '../../plugins-sdk/schema/node.ts';

type Pair = readonly [unknown, unknown];

const pairs: readonly Pair[] = [
  ['https://unset.invalid/a', 'https://unset.invalid/b'],
  [`0x${'1'.repeat(40)}`, `0x${'2'.repeat(40)}`],
  [`0x${'1'.repeat(64)}`, `0x${'2'.repeat(64)}`],
  ['1', '2'],
  ['1.0', '2.0'],
  [1, 2],
  [1000, 2000],
  [0, 1],
  [true, false],
];

/**
 * What stands in for unset variables where the schemas want more than any text.
 * @param texts the string with a stand-in in it, in both variants.
 * @param variant which of two different samples; a result that is the same with both depends on neither.
 */
export function sample(texts: Pair, nodes: readonly SchemaNode[], variant: 0 | 1): unknown {
  const fits = (value: unknown) => nodes.length === 0 || nodes.some(({ raw }) => Check(raw, value));
  const choices = nodes.flatMap((node) => node.choices ?? []);
  // A sample without a second one would hide that an ID depends on the variable.
  const known: readonly Pair[] = choices.length > 1 ? [[choices[0], choices[1]]] : [];
  const pair = [texts, ...known, ...pairs].find(([first, second]) => fits(first) && fits(second));
  return (pair ?? texts)[variant];
}
