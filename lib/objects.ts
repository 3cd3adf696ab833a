// Captured before any plugin is loaded, since a plugin may replace them.
const { freeze, isFrozen, values } = Object;

/** Freezes a JSON value at every level. Recursion is safe: parameters and responses are bounded in size and depth. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || isFrozen(value)) return value;
  for (const member of values(value)) deepFreeze(member);
  return freeze(value);
}

/** Creates a mark by which one module recognizes its objects; no other code can set it. */
export function privateMark<T extends object>() {
  const marked = new WeakSet<object>();
  return {
    has: (value: unknown): value is T => typeof value === 'object' && value !== null && marked.has(value),
    /** Marks an object. @returns the object. */
    add(value: T): T {
      marked.add(value);
      return value;
    },
  };
}
