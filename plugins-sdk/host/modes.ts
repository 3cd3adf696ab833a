import type { Definition } from '../define.ts';

type Modes = NonNullable<Definition['modes']>;
type Owner = Pick<Definition, 'modes'>;

function isList(modes: Modes): modes is readonly string[] {
  return Array.isArray(modes);
}

/** The modes that a plugin delivers. */
export function modesOf({ modes = [] }: Owner): readonly string[] {
  return isList(modes) ? modes : Object.keys(modes);
}

/** Those of its modes that may run the rest of the pipeline again. */
export function repeatingModesOf({ modes = [] }: Owner): readonly string[] {
  return isList(modes) ? [] : Object.keys(modes).filter((mode) => modes[mode]?.repeats);
}
