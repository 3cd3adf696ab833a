/** Has a private field of a subclass stand on the object that it is given. */
class OnGiven {
  constructor(given: object) {
    // biome-ignore lint/correctness/noConstructorReturn: that is what it is for.
    return given;
  }
}

/**
 * Tells which objects one module has seen; nobody else can mark an object. It is for objects that every request makes: entries of a
 * `WeakSet` cost each garbage collection more than the objects do.
 */
export function privateMark<T extends object>(): { has(value: unknown): value is T; add(value: T): T } {
  return class Marked extends OnGiven {
    readonly #isMarked = true;

    static has(value: unknown): value is T {
      return typeof value === 'object' && value !== null && #isMarked in value;
    }

    /** Marks an object that is not frozen yet. @returns it. */
    static add(value: T): T {
      if (!Marked.has(value)) new Marked(value);
      return value;
    }
  };
}
