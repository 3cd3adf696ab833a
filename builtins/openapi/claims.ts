/** What one plugin says. */
export interface Said<T> {
  readonly plugin: string;
  readonly value: T;
}

/** Things by name. A name means one thing, whoever says it. */
export class Claims<T> {
  readonly #kind: string;
  readonly #claims = new Map<string, Said<T>>();

  /** @param kind what the things are, for the message of a collision. */
  constructor(kind: string) {
    this.#kind = kind;
  }

  /** @throws Error when the name means something else already. */
  add(plugin: string, name: string, value: T): void {
    const other = this.#claims.get(name);
    if (other === undefined) this.#claims.set(name, { plugin, value });
    else if (!isSame(other.value, value)) throw collision(other.plugin, plugin, `${this.#kind} "${name}"`);
  }

  addAll(plugin: string, named: Readonly<Record<string, T>> = {}): void {
    for (const [name, value] of Object.entries(named)) this.add(plugin, name, value);
  }

  get(name: string): Said<T> | undefined {
    return this.#claims.get(name);
  }

  values(): ReadonlyMap<string, T> {
    return new Map([...this.#claims].map(([name, { value }]) => [name, value]));
  }

  toObject(): Readonly<Record<string, T>> {
    return Object.fromEntries(this.values());
  }
}

/** Functions cannot be compared: two are the same only if they are one. */
function isSame(a: unknown, b: unknown): boolean {
  return a === b || (JSON.stringify(a) === JSON.stringify(b) && !holdsFunction(a) && !holdsFunction(b));
}

function holdsFunction(value: unknown): boolean {
  return (
    typeof value === 'object' && value !== null && Object.values(value).some((member) => member instanceof Function)
  );
}

export function collision(plugin: string, other: string, what: string): Error {
  return new Error(
    plugin === other
      ? `plugin "${plugin}" describes the ${what} in two ways`
      : `plugins "${plugin}" and "${other}" both describe the ${what}`,
  );
}
