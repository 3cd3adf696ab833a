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
  const root = new Target();
  for (const location of locations) if (location !== undefined && location.length <= MAX_DEPTH) root.at(location);
  try {
    new Reader(text).read(root);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return locations.map((location) => (location === undefined ? undefined : root.tokenAt(location)));
}

/** Wanted values by their last step. */
type Children = ReadonlyMap<string | number, Target>;

/** A value that is wanted, or that leads to wanted ones. */
class Target {
  children: Map<string | number, Target> | undefined;
  /** When it was last read: visits are numbered, and those of children lie within those of their parents. */
  visit = 0;
  token: string | undefined;

  at(location: Location): Target {
    let target: Target = this;
    for (const step of location) {
      target.children ??= new Map();
      const child: Target = target.children.get(step) ?? new Target();
      target.children.set(step, child);
      target = child;
    }
    return target;
  }

  tokenAt(location: Location): string | undefined {
    let target: Target = this;
    for (const step of location) {
      const child: Target | undefined = target.children?.get(step);
      // Read before its parent: it belongs to an earlier member of the same name, and the last member counts.
      if (child === undefined || child.visit < target.visit) return undefined;
      target = child;
    }
    return target.token;
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

  /** @throws SyntaxError */
  read(target: Target, token: Token = this.#scanner.next()): void {
    const { start, end } = this.#scanner;
    target.visit = ++this.#visits;
    target.token = token === 'number' ? this.#json.toString('latin1', start, end) : undefined;
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
