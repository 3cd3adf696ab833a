import type { TSchema } from 'typebox';
import { type ConvertLeaf, convert, fromText } from '../plugins-sdk/schema/convert.ts';
import { isRecord, isWithin } from '../plugins-sdk/schema/path.ts';
import type { Interpolated, Reference } from './interpolate.ts';
import { sample } from './schema/samples.ts';

type Config = Readonly<Record<string, unknown>>;

export interface Filled {
  readonly config: Config;
  /** Paths of unset variables for which there is no choice of samples. */
  readonly rigid: ReadonlySet<string>;
}

/**
 * Gives the values that came from variables the types that the schema wants, and unset ones a sample of that type. Durations
 * become milliseconds.
 * @param choice which of two different samples stands in for an unset variable.
 */
export function fill(source: Interpolated, schema: TSchema, choice: 0 | 1 = 0): Filled {
  const rigid = new Set<string>();
  const config = convert(schema, source.value, '', leafOf(source, choice, rigid));
  return { config: isRecord(config) ? config : {}, rigid };
}

/** What becomes of one text, see {@link fill}. */
export function leafOf(
  { references, bareHex }: Pick<Interpolated, 'references' | 'bareHex'>,
  choice: 0 | 1 = 0,
  rigid: Set<string> = new Set(),
): ConvertLeaf {
  return (text, nodes, path) => {
    if (typeof text === 'number') return bareHex.textFor(text, nodes, path) ?? text;
    const reference = references.get(path);
    if (reference === undefined) return text;
    if (!reference.doubtful) return reference.whole ? fromText(text, nodes) : text;
    const { value, varies } = sample(reference.texts, nodes, choice);
    if (!varies) rigid.add(path);
    return value;
  };
}

/** Paths of strings whose text is not what the operator meant. */
export function doubtfulPaths(references: ReadonlyMap<string, Reference>): string[] {
  return [...references].filter(([, { doubtful }]) => doubtful).map(([path]) => path);
}

/** Whether a value or one inside it is doubtful. */
export function hasDoubt(references: ReadonlyMap<string, Reference>, path: string): boolean {
  return doubtfulPaths(references).some((doubtful) => isWithin(doubtful, path));
}
