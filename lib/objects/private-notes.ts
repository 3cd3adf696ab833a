/** Has a private field of a subclass stand on the object that it is given. */
class OnGiven {
  constructor(given: object) {
    // biome-ignore lint/correctness/noConstructorReturn: that is what it is for.
    return given;
  }
}

/** What one module alone knows of objects, frozen ones included. */
export interface PrivateNotes<T> {
  get(of: unknown): T | undefined;
  /** @returns the object. */
  set<O extends object>(of: O, note: T): O;
}

/** Notes of a private field: a `WeakMap` costs twenty times as much. */
function inFields<T>(): PrivateNotes<T> {
  return class Noted extends OnGiven {
    #note: T;

    constructor(given: object, note: T) {
      super(given);
      this.#note = note;
    }

    static get(of: unknown): T | undefined {
      return typeof of === 'object' && of !== null && #note in of ? of.#note : undefined;
    }

    static set<O extends object>(of: O, note: T): O {
      if (#note in of) of.#note = note;
      else new Noted(of, note);
      return of;
    }
  };
}

/** The same where an engine lets no private field stand on a frozen object (TC39, "nonextensible applies to private"). */
export function inMap<T>(): PrivateNotes<T> {
  const notes = new WeakMap<object, T>();
  return {
    get: (of) => (typeof of === 'object' && of !== null ? notes.get(of) : undefined),
    set: (of, note) => {
      notes.set(of, note);
      return of;
    },
  };
}

function takesFields(frozen: object): boolean {
  try {
    inFields().set(frozen, true);
    return true;
  } catch {
    return false;
  }
}

/** Notes that nobody else can read, make or pass on. */
export const privateNotes: <T>() => PrivateNotes<T> = takesFields(Object.freeze({})) ? inFields : inMap;
