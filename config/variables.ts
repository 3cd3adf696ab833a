import type { TSchema } from 'typebox';
import { Check } from 'typebox/value';
import { type ConvertLeaf, convert, fromText } from '../plugins-sdk/schema/convert.ts';
import { hasType, type SchemaNode } from '../plugins-sdk/schema/node.ts';
import { isRecord, isWithin } from '../plugins-sdk/schema/path.ts';
import type { Interpolated, Reference } from './interpolate.ts';

/**
 * Converts the values that came from variables to the types of the schema, and replaces unset ones by a sample of that type.
 * Durations become milliseconds.
 */
export function fill(source: Interpolated, schema: TSchema, leaf = leafOf(source)): Readonly<Record<string, unknown>> {
  const config = convert(schema, source.value, '', leaf);
  return isRecord(config) ? config : {};
}

type Texts = Pick<Interpolated, 'references' | 'written'>;

/** Returns the conversion of one text or number. @param standIn returns the replacement for an unset variable. */
export function leafOf({ references, written }: Texts, standIn = sample): ConvertLeaf {
  return (given, nodes, path) => {
    if (typeof given === 'number') return asWritten(given, written.get(path), nodes);
    const reference = references.get(path);
    if (reference?.doubtful) return standIn(given, nodes);
    return reference?.whole ? fromText(given, nodes) : given;
  };
}

/** Returns a number, or its text if that begins with `0x` and the schema accepts only the text, such as a name or a key. */
function asWritten(value: number, text: string | undefined, nodes: readonly SchemaNode[]): number | string {
  const takes = (any: unknown) => nodes.some((node) => hasType(node, any));
  return text?.startsWith('0x') && takes(text) && !takes(value) ? text : value;
}

const SAMPLES = [
  ...['https://unset.invalid', `0x${'1'.repeat(40)}`, `0x${'1'.repeat(64)}`, '1', '1.0'],
  ...[1, 1000, 0, true],
];

/** Returns a value that fits the schemas in place of an unset variable, so that plugins get no value of a wrong type. */
function sample(text: string, nodes: readonly SchemaNode[]): unknown {
  const fits = (value: unknown) => nodes.length === 0 || nodes.some(({ raw }) => Check(raw, value));
  return [text, ...nodes.flatMap((node) => node.choices ?? []), ...SAMPLES].find(fits) ?? text;
}

/** Checks whether the value at a path, or one inside it, is not what the operator meant. */
export function hasDoubt(references: ReadonlyMap<string, Reference>, path: string): boolean {
  return [...references].some(([at, { doubtful }]) => doubtful && isWithin(at, path));
}
