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

/** Notes of a private field: nobody else can read, make or pass them on, and a `WeakMap` costs twenty times as much. */
export function privateNotes<T>(): PrivateNotes<T> {
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
