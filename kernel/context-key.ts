let valuesOf: (holder: ContextHolder) => Map<object, unknown>;

/** What values can be left on: only context keys reach them. */
export class ContextHolder {
  readonly #values = new Map<object, unknown>();

  static {
    valuesOf = (holder) => holder.#values;
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
    // Nobody else writes under this key.
    return valuesOf(exchange).get(this) as T | undefined;
  }

  /** @throws when something was left already that must stay. */
  set(exchange: ContextHolder, value: T): void {
    const values = valuesOf(exchange);
    if (this.#once && values.has(this)) throw new Error(`context key "${this.name}" has a value already`);
    values.set(this, value);
  }

  /** @throws when nothing was left: a fault in the order of the plugins, never the client's. */
  require(exchange: ContextHolder): T {
    const value = this.get(exchange);
    if (value === undefined) throw new Error(`context key "${this.name}" has no value`);
    return value;
  }
}
