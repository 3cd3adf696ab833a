import { Check } from 'typebox/value';
import type { SchemaNode } from '../../plugins-sdk/schema/node.ts';

const SAMPLES = [
  ...['https://unset.invalid', `0x${'1'.repeat(40)}`, `0x${'1'.repeat(64)}`, '1', '1.0'],
  ...[1, 1000, 0, true],
];

/** What stands for an unset variable where the schemas want more than any text: plugins get nothing of a wrong type. */
export function sample(text: string, nodes: readonly SchemaNode[]): unknown {
  const fits = (value: unknown) => nodes.length === 0 || nodes.some(({ raw }) => Check(raw, value));
  return [text, ...nodes.flatMap((node) => node.choices ?? []), ...SAMPLES].find(fits) ?? text;
}
