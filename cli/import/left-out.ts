/** Why something of a document has no place in a config. */
export class Inexpressible extends Error {}

/** Something of a document that the config does not have, or has in another form. */
export interface LeftOut {
  /** What it is, such as `query parameter "expand"`; nothing for the operation itself. */
  readonly what: string;
  /** The operation, such as `GET /pets`, or where else it stands. */
  readonly at: string;
  readonly reason: string;
}

/** Says what became of a part of an operation, where that is not what the document says. */
export type Note = (what: string, reason: string) => void;

/**
 * What a parameter becomes: nothing, with a note, where no config can have it.
 * @throws Inexpressible for one that is required: without it the operation would ask for something else.
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

/** Places that a line names. */
const NAMED = 3;

/** A line for each thing and reason, with the first of the places where it stands. */
export function leftOutLines(list: readonly LeftOut[]): string[] {
  const groups = new Map<string, LeftOut[]>();
  for (const each of list) {
    const key = JSON.stringify(each.what === '' ? [each.at, each.reason] : [each.what, each.reason]);
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  return [...groups.values()].map((group) => {
    const [{ what, at, reason } = { what: '', at: '', reason: '' }] = group;
    if (what === '') return `${at}: ${reason}`;
    const places = [...new Set(group.map((each) => each.at))];
    const more = places.length > NAMED ? ` and ${places.length - NAMED} more` : '';
    return `${what}: ${reason} (${places.slice(0, NAMED).join(', ')}${more})`;
  });
}
