/** Keys and values in turn: for as few as a request has, a list is searched faster than a map is made. */
let entriesOf: (holder: ContextHolder) => unknown[];

/** What values can be left on: only context keys reach them. */
export class ContextHolder {
  readonly #entries: unknown[];

  /** @param from whose values are there at first. */
  constructor(from?: ContextHolder) {
    this.#entries = from === undefined ? [] : [...entriesOf(from)];
  }

  static {
    entriesOf = (holder) => {
      if (#entries in holder) return holder.#entries;
      throw new Error("the context key is of another copy of the SDK than the service's: no plugin may bundle the SDK");
    };
  }
}

export interface ContextKeyOptions {
  /** Whether what was left stays as it is: for what decides where a request goes, and is known to other plugins. */
  readonly once?: boolean;
}

/**
 * A typed key for what one plugin leaves on a request for another, or for its own later stages. Whoever holds the key can
 * read and write; nobody else can reach the value, and it is gone with the request.
 */
export class ContextKey<T> {
  readonly name: string;
  readonly #once: boolean;

  constructor(name: string, { once = false }: ContextKeyOptions = {}) {
    this.name = name;
    this.#once = once;
  }

  get(exchange: ContextHolder): T | undefined {
    const entries = entriesOf(exchange);
    const index = entries.indexOf(this);
    // Nobody else writes under this key.
    return index < 0 ? undefined : (entries[index + 1] as T);
  }

  /** @throws when something was left already that must stay. */
  set(exchange: ContextHolder, value: T): void {
    const entries = entriesOf(exchange);
    const index = entries.indexOf(this);
    if (index < 0) {
      entries.push(this, value);
      return;
    }
    if (this.#once) throw new Error(`context key "${this.name}" has a value already`);
    entries[index + 1] = value;
  }

  /** @throws when nothing was left: a fault in the order of the plugins, never the client's. */
  require(exchange: ContextHolder): T {
    const value = this.get(exchange);
    if (value === undefined) throw new Error(`context key "${this.name}" has no value`);
    return value;
  }
}
