let valuesOf: (holder: Slotted) => Map<object, unknown>;

/** What slots can be filled on: only they reach what is in them. */
export class Slotted {
  readonly #values = new Map<object, unknown>();

  static {
    valuesOf = (holder) => holder.#values;
  }
}

export interface SlotOptions {
  /** Whether what was left stays as it is: for what decides where a request goes, and is known to other plugins. */
  readonly once?: boolean;
}

/**
 * A typed token for what one plugin leaves on a request for another, or for its own later stages. Whoever holds the
 * token can read and write; nobody else can reach the value, and it is gone with the request.
 */
export class Slot<T> {
  readonly name: string;
  readonly #once: boolean;

  constructor(name: string, { once = false }: SlotOptions = {}) {
    this.name = name;
    this.#once = once;
  }

  get(exchange: Slotted): T | undefined {
    // Only this slot writes under this key.
    return valuesOf(exchange).get(this) as T | undefined;
  }

  /** @throws when something was left already that must stay. */
  set(exchange: Slotted, value: T): void {
    const values = valuesOf(exchange);
    if (this.#once && values.has(this)) throw new Error(`slot "${this.name}" is filled already`);
    values.set(this, value);
  }

  /** @throws when nothing was left: a fault in the order of the plugins, never the client's. */
  require(exchange: Slotted): T {
    const value = this.get(exchange);
    if (value === undefined) throw new Error(`slot "${this.name}" is empty`);
    return value;
  }
}
