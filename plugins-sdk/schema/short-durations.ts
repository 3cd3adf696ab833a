import type { TSchema } from 'typebox';
import { type Finding, warningAt } from '../define.ts';
import { convert, fromText } from './convert.ts';
import { DURATION } from './duration.ts';
import type { SchemaNode } from './node.ts';

/** Warns of numbers that are durations in milliseconds but look like seconds. @param path config path of the value. */
export function shortDurations(schema: TSchema, value: unknown, path: string): Finding[] {
  const findings: Finding[] = [];
  convert(schema, value, path, (given, nodes, at) => {
    const plain = typeof given === 'string' ? fromText(given, nodes) : given;
    const isShort = (node: SchemaNode) => Number(plain) > 0 && Number(plain) < Number(node.keyword(DURATION) ?? 0);
    if (typeof plain === 'number' && nodes.some(isShort))
      findings.push(warningAt(at, `is in milliseconds: for seconds write ${plain}s`));
    return given;
  });
  return findings;
}
