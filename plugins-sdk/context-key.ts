import { control, type Exchange } from '../kernel/exchange.ts';

/** The values of a request by their keys. */
function valuesOn(exchange: Exchange) {
  try {
    return control.valuesOf(exchange);
  } catch {
    throw new Error("the context key is of another copy of the SDK than the service's: no plugin may bundle the SDK");
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
 * A typed key for a value that one plugin leaves on a request. Whoever holds the key can read and write; nobody else
 * can reach the value, and it is gone with the request.
 */
export class ContextKey<T> {
  readonly name: string;
  readonly #options: ContextKeyOptions;

  constructor(name: string, options: ContextKeyOptions = {}) {
    this.name = name;
    this.#options = options;
  }

  /** Adds what the log shows of a request to its fields; those that are there stay. */
  static addLogged(exchange: Exchange, fields: Record<string, unknown>): void {
    for (const [key, value] of valuesOn(exchange) ?? [])
      if (key instanceof ContextKey && key.#options.logged) fields[key.name] ??= value;
  }

  get(exchange: Exchange): T | undefined {
    // No other plugin writes under this key.
    return valuesOn(exchange)?.get(this) as T | undefined;
  }

  /** @throws when something was left already that must stay. */
  set(exchange: Exchange, value: T): void {
    const { once, logged } = this.#options;
    if (valuesOn(exchange)?.has(this) && once) throw new Error(`context key "${this.name}" has a value already`);
    control.setValue(exchange, this, value);
    const origin = logged && control.originOf(exchange);
    if (origin) this.set(origin, value);
  }

  /** @throws when nothing was left: a fault in the order of the plugins, never the client's. */
  require(exchange: Exchange): T {
    const value = this.get(exchange);
    if (value === undefined) throw new Error(`context key "${this.name}" has no value`);
    return value;
  }
}
