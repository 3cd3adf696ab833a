import { control, type Exchange } from '../kernel/exchange.ts';

/** Returns the values on a request, by key. */
function valuesOn(exchange: Exchange) {
  try {
    return control.valuesOf(exchange);
  } catch {
    throw new Error("the context key is of another copy of the SDK than the service's: no plugin may bundle the SDK");
  }
}

/** The options of a {@link ContextKey}. */
export interface ContextKeyOptions {
  /** Whether the first value is final. Use it for values that decide about a request, under a key that other plugins know. */
  readonly once?: boolean;
  /**
   * Whether the request's log line shows the value, in a field named after the key. It must then be no secret. A value that is
   * set on a fork of a request is set on that request, too.
   */
  readonly logged?: boolean;
}

/**
 * A typed key for a value that one plugin leaves on a request for others. Only code that has the key can read or write the value,
 * which is gone with the request.
 */
export class ContextKey<T> {
  readonly name: string;
  readonly #options: ContextKeyOptions;

  constructor(name: string, options: ContextKeyOptions = {}) {
    this.name = name;
    this.#options = options;
  }

  /** Adds a request's logged values to the fields of its log line. Existing fields stay. */
  static addLogged(exchange: Exchange, fields: Record<string, unknown>): void {
    for (const [key, value] of valuesOn(exchange) ?? [])
      if (key instanceof ContextKey && key.#options.logged) fields[key.name] ??= value;
  }

  /** Returns the value on a request, if there is one. */
  get(exchange: Exchange): T | undefined {
    // No other plugin writes under this key.
    return valuesOn(exchange)?.get(this) as T | undefined;
  }

  /** Sets the value on a request. @throws Error if the key is `once` and has a value. */
  set(exchange: Exchange, value: T): void {
    const { once, logged } = this.#options;
    if (valuesOn(exchange)?.has(this) && once) throw new Error(`context key "${this.name}" has a value already`);
    control.setValue(exchange, this, value);
    const origin = logged && control.originOf(exchange);
    if (origin) this.set(origin, value);
  }

  /** Returns the value on a request. @throws Error if there is none: a fault in the plugins' order, never the client's. */
  require(exchange: Exchange): T {
    const value = this.get(exchange);
    if (value === undefined) throw new Error(`context key "${this.name}" has no value`);
    return value;
  }
}
