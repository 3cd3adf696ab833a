import type { TSchema } from 'typebox';
import type { Interpolated, Reference } from './interpolate.ts';
import { isRecord, isWithin, lineage } from './path.ts';
import { type ConvertLeaf, convert, fromText } from './schema/convert.ts';
import { sample } from './schema/samples.ts';

/** Chooses between the two samples that can stand in for an unset variable. */
export type Variant = (reference: Reference) => 0 | 1;

export const first: Variant = () => 0;
export const second: Variant = () => 1;
/** The second sample for one variable only. */
export const varying =
  (name: string): Variant =>
  ({ unset }) =>
    unset.includes(name) ? 1 : 0;

export interface Filled {
  readonly config: Readonly<Record<string, unknown>>;
  /** Paths of unset variables for which there is no choice of samples. */
  readonly rigid: ReadonlySet<string>;
}

/** Gives the values that came from variables the types that the schema wants, and unset ones a sample of that type. */
export function fill({ value, references }: Interpolated, schema: TSchema, variant: Variant): Filled {
  const rigid = new Set<string>();
  const concerned = new Set(['', ...[...references.keys()].flatMap((path) => [...lineage(path)])]);
  const config = convert(schema, value, '', leafOf(references, variant, rigid), (path) => concerned.has(path));
  return { config: isRecord(config) ? config : {}, rigid };
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
