// Captured before any plugin is loaded, since a plugin may replace them.
const { freeze, isFrozen, values } = Object;

/** Freezes a JSON value at every level. Recursion is safe: parameters and responses are bounded in size and depth. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || isFrozen(value)) return value;
  for (const member of values(value)) deepFreeze(member);
  return freeze(value);
}

/** A base class whose constructor returns the given object, so that a subclass adds its private field to that object. */
class OnGiven {
  constructor(given: object) {
    // biome-ignore lint/correctness/noConstructorReturn: that is the purpose of this class.
    return given;
  }
}

/**
 * Creates a mark by which one module recognizes its objects; no other code can set it. It is for objects that every request
 * creates, where a `WeakSet` is too slow: its entries cost each garbage collection more than the objects do.
 */
export function privateMark<T extends object>(): { has(value: unknown): value is T; add(value: T): T } {
  return class Marked extends OnGiven {
    readonly #isMarked = true;

    static has(value: unknown): value is T {
      return typeof value === 'object' && value !== null && #isMarked in value;
    }

    /** Marks an object, which must not be frozen yet. @returns the object. */
    static add(value: T): T {
      if (!Marked.has(value)) new Marked(value);
      return value;
    }
  };
}
