/**
 * A typed token for what one plugin leaves on a request for another, or for its own later stages. Whoever holds the
 * token can read and write; nobody else can reach the value, and it is gone with the request.
 */
export class Slot<T> {
  readonly name: string;
  readonly #values = new WeakMap<object, T>();

  constructor(name: string) {
    this.name = name;
  }

  get(exchange: object): T | undefined {
    return this.#values.get(exchange);
  }

  set(exchange: object, value: T): void {
    this.#values.set(exchange, value);
  }

  /** @throws when nothing was left: a fault in the order of the plugins, never the client's. */
  require(exchange: object): T {
    const value = this.#values.get(exchange);
    if (value === undefined) throw new Error(`slot "${this.name}" is empty`);
    return value;
  }
}
