import type { Signed } from './kernel.ts';

const known = new WeakSet<object>();

/**
 * Says of a result of `sign` that its signatures need no check any more: the key of this process made them, or they were
 * recovered from. For the plugin that did so.
 */
export function checked(signed: Signed): Signed {
  known.add(Object.freeze(signed));
  return signed;
}

export function isChecked(value: unknown): value is Signed {
  return typeof value === 'object' && value !== null && known.has(value);
}
