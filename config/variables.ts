import type { TSchema } from 'typebox';
import { type ConvertLeaf, convert, fromText } from '../plugins-sdk/schema/convert.ts';
import { isRecord, isWithin } from '../plugins-sdk/schema/path.ts';
import type { Interpolated, Reference } from './interpolate.ts';
import { sample } from './schema/samples.ts';

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

/** What becomes of one text, see {@link fill}. */
export function leafOf(
  { references, bareHex }: Pick<Interpolated, 'references' | 'bareHex'>,
  standIn = sample,
): ConvertLeaf {
  return (text, nodes, path) => {
    if (typeof text === 'number') return bareHex.textFor(text, nodes, path) ?? text;
    const reference = references.get(path);
    if (reference?.doubtful) return standIn(text, nodes);
    return reference?.whole ? fromText(text, nodes) : text;
  };
}

/** Whether a value or one inside it is not what the operator meant. */
export function hasDoubt(references: ReadonlyMap<string, Reference>, path: string): boolean {
  return [...references].some(([at, { doubtful }]) => doubtful && isWithin(at, path));
}
