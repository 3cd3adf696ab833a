import { JsonScanner, type Token } from '../../plugins-sdk/json/scan.ts';

/** Where a value is in a JSON document: member names and array indices from the root. */
export type Location = readonly (string | number)[];

/** Far beyond the depth of any document that reaches this. */
const MAX_DEPTH = 1_000;

/**
 * The source text of the number at `location` in a JSON text, digit by digit: what `JSON.parse` rounds to a double. Of
 * duplicate member names the last one counts, as in `JSON.parse`.
 *
 * @param text JSON that `JSON.parse` has accepted; in any other nothing is found, or something meaningless
 * @returns undefined when nothing is there, something that is no number, or when the location has over 1,000 steps.
 */
export function exactNumberAt(text: string, location: Location): string | undefined {
  return exactNumbersAt(text, [location])[0];
}

/**
 * {@link exactNumberAt} for many locations, whose number hardly matters: the text is read once, from start to end.
 *
 * @param locations nothing is found where there is none.
 */
export function exactNumbersAt(
  text: string,
  locations: readonly (Location | undefined)[],
): readonly (string | undefined)[] {
  const places = locations.map((location) => location?.map((step) => [step]));
  return read(text, places).map((found) => found?.token);
}

/** A value of a JSON text: for a list or object an empty one, for a number also its source text. */
export interface Found {
  readonly value: unknown;
  readonly token: string | undefined;
}

/** Where a value is: of each step the names that a member may have, and the indices that an element may have. */
export type Place = readonly Location[];

/** The values at some places in a JSON text, which is read once and of which nothing else is made. */
export function valuesAt(text: string, places: readonly Place[]): readonly (Found | undefined)[] {
  return read(text, places);
}

function read(text: string, places: readonly (Place | undefined)[]): readonly (Found | undefined)[] {
  const root = new Target();
  const targets = places.map((place) => (place && place.length <= MAX_DEPTH ? root.along(place) : undefined));
  const reader = new Reader(text);
  try {
    reader.read(root);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return targets.map((target) => (target?.isCurrent() ? reader.valueOf(target) : undefined));
}

/** Wanted values by their last step. */
type Children = ReadonlyMap<string | number, Target>;

/** A value that is wanted, or that leads to wanted ones. */
class Target {
  readonly #parent: Target | undefined;
  children: Map<string | number, Target> | undefined;
  /** When it was last read: visits are numbered, and those of children lie within those of their parents. */
  visit = 0;
  token: Token = 'end';
  start = 0;
  end = 0;

  constructor(parent?: Target) {
    this.#parent = parent;
  }

  along(place: Place): Target {
    let target: Target = this;
    for (const step of place) {
      target.children ??= new Map();
      const { children }: Target = target;
      const child: Target =
        step.map((key) => children.get(key)).find((known) => known !== undefined) ?? new Target(target);
      for (const key of step) children.set(key, child);
      target = child;
    }
    return target;
  }

  /** One that was read before its parent belongs to an earlier member of the same name, and the last member counts. */
  isCurrent(): boolean {
    const parent = this.#parent;
    return this.visit > 0 && (parent === undefined || (this.visit > parent.visit && parent.isCurrent()));
  }
}

class Reader {
  readonly #json: Buffer;
  readonly #scanner: JsonScanner;
  #visits = 0;

  constructor(text: string) {
    this.#json = Buffer.from(text);
    this.#scanner = new JsonScanner(this.#json, MAX_DEPTH);
  }

  valueOf({ token, start, end }: Target): Found {
    if (token === 'array' || token === 'object') return { value: token === 'array' ? [] : {}, token: undefined };
    const text = this.#json.toString('utf8', start, end);
    return { value: JSON.parse(text), token: token === 'number' ? text : undefined };
  }

  /** @throws SyntaxError */
  read(target: Target, token: Token = this.#scanner.next()): void {
    const { start, end } = this.#scanner;
    target.visit = ++this.#visits;
    target.token = token;
    target.start = start;
    target.end = end;
    if (target.children === undefined) this.#skip(token);
    else if (token === 'object') this.#readObject(target.children);
    else if (token === 'array') this.#readArray(target.children);
  }

  #readObject(children: Children): void {
    // Most keys are not wanted, and a string for each would cost more than everything else.
    const lengths = new Set(Array.from(children.keys(), (name) => Buffer.byteLength(String(name))));
    const scanner = this.#scanner;
    while (scanner.next() === 'key') {
      const { start, end, hasEscapes } = scanner;
      const isWanted = hasEscapes || lengths.has(end - start - 2);
      this.#readChild(isWanted ? children.get(this.#name()) : undefined, scanner.next());
    }
  }

  #readArray(children: Children): void {
    for (let i = 0; ; i++) {
      const token = this.#scanner.next();
      if (token === 'close') return;
      this.#readChild(children.get(i), token);
    }
  }

  #readChild(child: Target | undefined, token: Token): void {
    if (child === undefined) this.#skip(token);
    else this.read(child, token);
  }

  #skip(token: Token): void {
    if (token === 'array' || token === 'object') this.#scanner.skip();
  }

  /** What the key that was just read stands for. */
  #name(): string {
    const { start, end, hasEscapes } = this.#scanner;
    if (hasEscapes) return JSON.parse(this.#json.toString('utf8', start, end));
    return this.#json.toString('utf8', start + 1, end - 1);
  }
}
