import { isDeepStrictEqual } from 'node:util';

/** What one plugin says. */
export interface Said<T> {
  readonly plugin: string;
  readonly value: T;
}

/** Things by name. A name means one thing, whoever says it. */
export class Claims<T> extends Map<string, Said<T>> {
  readonly #kind: string;

  /** @param kind what the things are, for the message of a collision. */
  constructor(kind: string) {
    super();
    this.#kind = kind;
  }

  /** @throws Error when the name means something else already. */
  add(plugin: string, name: string, value: T): void {
    const other = this.get(name);
    if (other === undefined) this.set(name, { plugin, value });
    else if (!isDeepStrictEqual(other.value, value)) throw collision(other.plugin, plugin, `${this.#kind} "${name}"`);
  }

  addAll(plugin: string, named: Readonly<Record<string, T>> = {}): void {
    for (const [name, value] of Object.entries(named)) this.add(plugin, name, value);
  }

  toObject(): Readonly<Record<string, T>> {
    return Object.fromEntries([...this].map(([name, { value }]) => [name, value]));
  }
}

export function collision(plugin: string, other: string, what: string): Error {
  return new Error(
    plugin === other
      ? `plugin "${plugin}" describes the ${what} in two ways`
      : `plugins "${plugin}" and "${other}" both describe the ${what}`,
  );
}
