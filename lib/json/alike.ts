import { canonicalJson } from './canonical-json.ts';
import { isRecord, type Json } from './value.ts';

/** Names of members up to which JSON.stringify is told their order: it then asks each object for all of them. */
const MOST_NAMES = 64;
/** How often it may ask in vain for each time that it finds something. */
const MOST_IN_VAIN = 4;
/** Levels up to which JSON.stringify is quick. */
const DEEPEST = 8;

/**
 * What `canonicalJson` writes of a list, and sooner where the list is one of objects that are alike.
 *
 * @param items as JSON.parse made them
 */
export function canonicalList(items: readonly Json[]): string {
  const names = isRecord(items[0]) ? new Names().of(items) : undefined;
  return names === undefined ? canonicalJson(items) : JSON.stringify(items, names);
}

class Names {
  readonly #names = new Set<string>();
  #objects = 0;
  #members = 0;

  /** The names of all members at any depth, in order; nothing where JSON.stringify would be slow, or would find what is inherited. */
  of(items: readonly Json[]): string[] | undefined {
    if (!this.#collect(items, 0) || this.#names.size * this.#objects > MOST_IN_VAIN * this.#members) return undefined;
    const names = [...this.#names].sort();
    return 'toJSON' in Array.prototype || names.some((name) => name in Object.prototype) ? undefined : names;
  }

  /** False as soon as there are too many names or levels, or a number that JSON has no text for. */
  #collect(value: unknown, depth: number): boolean {
    if (Array.isArray(value)) return depth <= DEEPEST && value.every((item) => this.#collect(item, depth + 1));
    if (!isRecord(value)) return typeof value !== 'number' || Number.isFinite(value);
    if (depth > DEEPEST) return false;
    this.#objects += 1;
    for (const name of Object.keys(value)) {
      this.#members += 1;
      this.#names.add(name);
      if (!this.#collect(value[name], depth + 1)) return false;
    }
    return this.#names.size <= MOST_NAMES;
  }
}
