/** A typed key for a value in memory that outlives a reload. Only code that has the key can read and replace the value. */
export class StateKey<T> {
  readonly name: string;
  /** Whether the value also outlives configs that do not ask for it. */
  readonly lasting: boolean;
  /** Makes keys of different types incompatible. It has no value. */
  declare readonly holds: T;

  constructor(name: string, { lasting = false }: { readonly lasting?: boolean } = {}) {
    this.name = name;
    this.lasting = lasting;
  }
}

/** A value that is closed once no plugin set uses it. */
export interface Closable {
  close(): void | Promise<void>;
}

/** The values that outlive a reload. */
export interface States {
  /**
   * Returns the value that the plugin set before this one kept under the key, if its version was the same; else a new one.
   * A value with a `close` is closed when it is replaced or no plugin set asks for it. Call this while a plugin is set up or
   * starts: later there is nothing left to take over.
   * @param version a text of all of the config that the value depends on.
   */
  keep<T>(key: StateKey<T>, version: string, make: () => T): T;
}

interface Kept {
  readonly version: string;
  readonly value: unknown;
}

function isClosable(value: unknown): value is Closable {
  return typeof value === 'object' && value !== null && 'close' in value && typeof value.close === 'function';
}

/** The state of one plugin set, which may take over values of the set before. */
export class StateStore implements States {
  #inherited: ReadonlyMap<StateKey<unknown>, Kept>;
  readonly #kept = new Map<StateKey<unknown>, Kept>();

  /** @param before the store whose values may be taken over; it is not changed. */
  constructor(before?: StateStore) {
    this.#inherited = before === undefined ? new Map() : before.#kept;
  }

  keep<T>(key: StateKey<T>, version: string, make: () => T): T {
    const asked = this.#kept.get(key);
    if (asked !== undefined && asked.version !== version)
      throw new Error(`the state "${key.name}" is asked for in two versions`);
    const known = asked ?? this.#inherited.get(key);
    const kept = known?.version === version ? known : { version, value: make() };
    this.#kept.set(key, kept);
    // The cast is safe: only this key finds the value, and it sets values of its own type.
    return kept.value as T;
  }

  /** Takes over lasting values that were not asked for. Later nothing is taken over, so the store before can be forgotten. */
  settle(): void {
    for (const [key, kept] of this.#inherited) if (key.lasting && !this.#kept.has(key)) this.#kept.set(key, kept);
    this.#inherited = new Map();
  }

  /** Closes the values that no other store uses. @param others the stores still in use. */
  async closeAllBut(others: readonly StateStore[]): Promise<void> {
    const used = new Set(others.flatMap((other) => other.#values()));
    const unused = this.#values().filter((value) => !used.has(value));
    await Promise.all(unused.filter(isClosable).map(async (value) => value.close()));
  }

  #values(): unknown[] {
    return [...this.#kept.values()].map(({ value }) => value);
  }
}
