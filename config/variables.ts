import type { TSchema } from 'typebox';
import { type ConvertLeaf, convert, fromText } from '../plugins-sdk/schema/convert.ts';
import { isRecord, isWithin } from '../plugins-sdk/schema/path.ts';
import type { Interpolated, Reference } from './interpolate.ts';

type Config = Readonly<Record<string, unknown>>;

/** Gives the values that came from variables the types that the schema wants. Durations become milliseconds. */
export function fill(source: Interpolated, schema: TSchema): Config {
  const config = convert(schema, source.value, '', leafOf(source));
  return isRecord(config) ? config : {};
}

/** What becomes of one text, see {@link fill}. */
export function leafOf({ references, bareHex }: Pick<Interpolated, 'references' | 'bareHex'>): ConvertLeaf {
  return (text, nodes, path) => {
    if (typeof text === 'number') return bareHex.textFor(text, nodes, path) ?? text;
    const reference = references.get(path);
    return reference?.whole && !reference.doubtful ? fromText(text, nodes) : text;
  };
}

/** Whether a value or one inside it is not what the operator meant. */
export function hasDoubt(references: ReadonlyMap<string, Reference>, path: string): boolean {
  return [...references].some(([at, { doubtful }]) => doubtful && isWithin(at, path));
}
