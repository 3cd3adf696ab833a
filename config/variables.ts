import type { TSchema } from 'typebox';
import type { Interpolated, Reference } from './interpolate.ts';
import { isRecord, isWithin, lineage } from './path.ts';
import { type Concerns, type ConvertLeaf, convert, fromText } from './schema/convert.ts';
import { sample } from './schema/samples.ts';

/** Chooses between the two samples that can stand in for an unset variable. */
export type Variant = (reference: Reference) => 0 | 1;

export const first: Variant = () => 0;
export const second: Variant = () => 1;
type Config = Readonly<Record<string, unknown>>;

export interface Filled {
  readonly config: Config;
  /** Paths of unset variables for which there is no choice of samples. */
  readonly rigid: ReadonlySet<string>;
}

/** Gives the values that came from variables the types that the schema wants, and unset ones a sample of that type. */
export function fill({ value, references }: Interpolated, schema: TSchema, variant: Variant): Filled {
  const rigid = new Set<string>();
  const config = convert(schema, value, '', leafOf(references, variant, rigid), onTheWayTo(references.keys()));
  return { config: isRecord(config) ? config : {}, rigid };
}

/** A config that was filled with first samples, with the second ones for some variables. */
export function vary(
  { value, references }: Interpolated,
  schema: TSchema,
  filled: Config,
  names: readonly string[],
): Config {
  const paths = [...references]
    .filter(([, { unset }]) => unset.some((name) => names.includes(name)))
    .map(([path]) => path);
  const config = convert(schema, value, '', leafOf(references, second), onTheWayTo(paths), filled);
  return isRecord(config) ? config : {};
}

function onTheWayTo(paths: Iterable<string>): Concerns {
  const all = new Set(['', ...[...paths].flatMap((path) => [...lineage(path)])]);
  return (path) => all.has(path);
}

/** What becomes of one string, see {@link fill}. */
export function leafOf(
  references: ReadonlyMap<string, Reference>,
  variant: Variant = first,
  rigid: Set<string> = new Set(),
): ConvertLeaf {
  return (text, nodes, path) => {
    const reference = references.get(path);
    if (reference === undefined) return text;
    if (!reference.doubtful) return reference.whole ? fromText(text, nodes) : text;
    const { value, varies } = sample(reference.texts, nodes, variant(reference));
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
