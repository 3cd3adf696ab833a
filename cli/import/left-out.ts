/** A part of a document that a config cannot express; the message is the reason. */
export class Inexpressible extends Error {}

/** A part of a document that the config does not have, or has in another form. */
export interface LeftOut {
  /** The part, such as `query parameter "expand"`; absent for a whole operation. */
  readonly what?: string | undefined;
  /** The operation, such as `GET /pets`, or another place. */
  readonly at: string;
  readonly reason: string;
}

/** Notes what a config has not, or has in another form, with the reason. */
export type Note = (what: string, reason: string) => void;

/**
 * Makes a part of a config. If no config can express it, returns none and notes the reason.
 * @throws Inexpressible for a required part, since without it the operation would do something else.
 */
export function unlessInexpressible<T>(what: string, isRequired: boolean, note: Note, make: () => T): T[] {
  try {
    return [make()];
  } catch (error) {
    if (!(error instanceof Inexpressible)) throw error;
    if (isRequired) throw new Inexpressible(`${what} ${error.message}`);
    note(what, error.message);
    return [];
  }
}

/** The most places that a line names. */
const NAMED = 3;

/** Returns a line for each part and reason, with its first places. */
export function leftOutLines(list: readonly LeftOut[]): string[] {
  const placesOf = new Map<string, Set<string>>();
  for (const { what, at, reason } of list) {
    const line = `${what ?? at}: ${reason}`;
    const places = placesOf.get(line) ?? new Set();
    placesOf.set(line, what === undefined ? places : places.add(at));
  }
  return [...placesOf].map(([line, places]) => {
    const more = places.size > NAMED ? ` and ${places.size - NAMED} more` : '';
    return places.size === 0 ? line : `${line} (${[...places].slice(0, NAMED).join(', ')}${more})`;
  });
}
