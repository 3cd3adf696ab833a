// Captured before any plugin is loaded, since a plugin may replace them.
const { freeze, isFrozen, values } = Object;

/** Freezes a JSON value at every level. Recursion is safe: parameters and responses are bounded in size and depth. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || isFrozen(value)) return value;
  for (const member of values(value)) deepFreeze(member);
  return freeze(value);
}
