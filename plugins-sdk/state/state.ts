/** A typed key for memory that outlives a reload. Only who holds the token can read and replace the value. */
export class StateKey<T> {
  readonly name: string;
  /** Whether the value outlives configs that do not ask for it, too. */
  readonly lasting: boolean;
  /** Keeps keys of different types apart. */
  declare readonly holds: T;

  constructor(name: string, { lasting = false }: { readonly lasting?: boolean } = {}) {
    this.name = name;
    this.lasting = lasting;
  }
}

/** State that is closed once no set of plugins uses it. */
export interface Closable {
  close(): void | Promise<void>;
}

/** What outlives a reload. */
export interface States {
  /**
   * The value that the set of plugins before this one kept under the key, if its version was the same; else a new one.
   * A value with a `close` is closed when it is replaced or no longer asked for. To be asked for while a plugin sets
   * itself up or starts: later there is nothing left to take over.
   * @param version names all of the config that the value depends on.
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

/** The state of one set of plugins, which may take over that of the set before. */
export class StateStore implements States {
  #inherited: ReadonlyMap<StateKey<unknown>, Kept>;
  readonly #kept = new Map<StateKey<unknown>, Kept>();

  /** @param before whose values may be taken over; it goes on as it is. */
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
    // Only this key leads here, with values of its own type.
    return kept.value as T;
  }

  /** Nothing more is taken over: what lasts is here, and the set before can be forgotten. */
  settle(): void {
    for (const [key, kept] of this.#inherited) if (key.lasting && !this.#kept.has(key)) this.#kept.set(key, kept);
    this.#inherited = new Map();
  }

  /** Closes what no other set uses. @param others that live on. */
  async closeAllBut(others: readonly StateStore[]): Promise<void> {
    const used = new Set(others.flatMap((other) => other.#values()));
    const unused = this.#values().filter((value) => !used.has(value));
    await Promise.all(unused.filter(isClosable).map(async (value) => value.close()));
  }

  #values(): unknown[] {
    return [...this.#kept.values()].map(({ value }) => value);
  }
}
