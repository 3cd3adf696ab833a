/** Keys and values in turn: for as few as a request has, a list is searched faster than a map is made. */
let entriesOf: (holder: ContextHolder) => unknown[];
let originOf: (holder: ContextHolder) => ContextHolder | undefined;

/** What values can be left on: only context keys reach them. */
export class ContextHolder {
  readonly #entries: unknown[];
  readonly #origin: ContextHolder | undefined;

  /** @param from the holder whose values it has at first. */
  constructor(from?: ContextHolder) {
    this.#origin = from;
    this.#entries = from === undefined ? [] : [...entriesOf(from)];
  }

  static {
    entriesOf = (holder) => {
      if (#entries in holder) return holder.#entries;
      throw new Error("the context key is of another copy of the SDK than the service's: no plugin may bundle the SDK");
    };
    originOf = (holder) => holder.#origin;
  }
}

export interface ContextKeyOptions {
  /** Whether the first value stays: for values that decide where a request goes, under a key that other plugins know. */
  readonly once?: boolean;
  /**
   * Whether the request's line in the log has the value, as a field of the key's name: no secret then. What is left on a fork of a
   * request stands on that request, too.
   */
  readonly logged?: boolean;
}

/**
 * A typed key for what one plugin leaves on a request for another, or for its own later stages. Whoever holds the key can
 * read and write; nobody else can reach the value, and it is gone with the request.
 */
export class ContextKey<T> {
  readonly name: string;
  readonly #once: boolean;
  readonly #logged: boolean;

  constructor(name: string, { once = false, logged = false }: ContextKeyOptions = {}) {
    this.name = name;
    this.#once = once;
    this.#logged = logged;
  }

  /** Adds what the log shows of a request to its fields; those that are there stay. */
  static addLogged(exchange: ContextHolder, fields: Record<string, unknown>): void {
    const entries = entriesOf(exchange);
    for (let index = 0; index < entries.length; index += 2) {
      const key = entries[index];
      if (key instanceof ContextKey && key.#logged) fields[key.name] ??= entries[index + 1];
    }
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
    if (index >= 0 && this.#once) throw new Error(`context key "${this.name}" has a value already`);
    if (index < 0) entries.push(this, value);
    else entries[index + 1] = value;
    const origin = this.#logged ? originOf(exchange) : undefined;
    if (origin !== undefined) this.set(origin, value);
  }

  /** @throws when nothing was left: a fault in the order of the plugins, never the client's. */
  require(exchange: ContextHolder): T {
    const value = this.get(exchange);
    if (value === undefined) throw new Error(`context key "${this.name}" has no value`);
    return value;
  }
}
