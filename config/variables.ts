import type { TSchema } from 'typebox';
import { Check } from 'typebox/value';
import { type ConvertLeaf, convert, fromText } from '../plugins-sdk/schema/convert.ts';
import { hasType, type SchemaNode } from '../plugins-sdk/schema/node.ts';
import { isRecord, isWithin } from '../plugins-sdk/schema/path.ts';
import type { Interpolated, Reference } from './interpolate.ts';

type Config = Readonly<Record<string, unknown>>;

/**
 * Gives the values that came from variables the types that the schema wants, and unset ones a sample of that type. Durations
 * become milliseconds.
 * @param standIn what an unset variable becomes.
 */
export function fill(source: Interpolated, schema: TSchema, standIn = sample): Config {
  const config = convert(schema, source.value, '', leafOf(source, standIn));
  return isRecord(config) ? config : {};
}

/** What becomes of one text or number, see {@link fill}. */
export function leafOf(
  { references, bareHex }: Pick<Interpolated, 'references' | 'bareHex'>,
  standIn = sample,
): ConvertLeaf {
  return (given, nodes, path) => {
    if (typeof given === 'number') return asWritten(given, bareHex.get(path), nodes);
    const reference = references.get(path);
    if (reference?.doubtful) return standIn(given, nodes);
    return reference?.whole ? fromText(given, nodes) : given;
  };
}

/** A number, or what stands in the file where that schema takes a text and no number. */
function asWritten(value: number, text: string | undefined, nodes: readonly SchemaNode[]): number | string {
  const takes = (any: unknown) => nodes.some((node) => hasType(node, any));
  return text !== undefined && takes(text) && !takes(value) ? text : value;
}

const SAMPLES = [
  ...['https://unset.invalid', `0x${'1'.repeat(40)}`, `0x${'1'.repeat(64)}`, '1', '1.0'],
  ...[1, 1000, 0, true],
];

/** What stands for an unset variable where the schemas want more than any text: plugins get nothing of a wrong type. */
function sample(text: string, nodes: readonly SchemaNode[]): unknown {
  const fits = (value: unknown) => nodes.length === 0 || nodes.some(({ raw }) => Check(raw, value));
  return [text, ...nodes.flatMap((node) => node.choices ?? []), ...SAMPLES].find(fits) ?? text;
}

/** Whether a value or one inside it is not what the operator meant. */
export function hasDoubt(references: ReadonlyMap<string, Reference>, path: string): boolean {
  return [...references].some(([at, { doubtful }]) => doubtful && isWithin(at, path));
}
