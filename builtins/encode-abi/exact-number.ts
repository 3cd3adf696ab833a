/** Where a value is in a JSON document: member names and array indices from the root. */
export type Location = readonly (string | number)[];

const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Far beyond the depth of any document that reaches this; keeps the recursion below from using up the stack. */
const MAX_DEPTH = 1_000;

/**
 * The source text of the number at `location` in a JSON text, digit by digit: what `JSON.parse` rounds to a double. Of
 * duplicate member names the last one counts, as in `JSON.parse`.
 *
 * @param text JSON that `JSON.parse` has accepted. For any other text the answer is undefined or meaningless, but it comes.
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
  new Scan(text).read(0, root);
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
      // Read before its parent was: in an earlier member of a name that came again.
      if (child === undefined || child.visit < target.visit) return undefined;
      target = child;
    }
    return target.token;
  }
}

class Scan {
  readonly #text: string;
  #visits = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Reads the value that starts at `from`, or behind spaces there, and returns the position behind it. */
  read(from: number, target: Target): number {
    const text = this.#text;
    const at = skipSpace(text, from);
    target.visit = ++this.#visits;
    target.token = numberAt(text, at);
    const { children } = target;
    if (children !== undefined) {
      const code = text.charCodeAt(at);
      if (code === OPEN_BRACE) return this.#readObject(at + 1, children);
      if (code === OPEN_BRACKET) return this.#readArray(at + 1, children);
    }
    return skipValue(text, at);
  }

  #readObject(from: number, children: Children): number {
    const text = this.#text;
    let at = skipSpace(text, from);
    while (at < text.length && text.charCodeAt(at) !== CLOSE_BRACE) {
      const end = skipValue(text, at);
      const child = children.get(nameAt(text, at, end));
      at = skipSpace(text, end);
      if (text.charCodeAt(at) === COLON) at = skipSpace(text, at + 1);
      at = this.#skipPast(at, child);
    }
    return at + 1;
  }

  #readArray(from: number, children: Children): number {
    const text = this.#text;
    let at = skipSpace(text, from);
    for (let i = 0; at < text.length && text.charCodeAt(at) !== CLOSE_BRACKET; i++) {
      at = this.#skipPast(at, children.get(i));
    }
    return at + 1;
  }

  /** From the start of a value to the start of what follows its comma, if there is one. */
  #skipPast(from: number, child: Target | undefined): number {
    const text = this.#text;
    const end = child === undefined ? skipValue(text, from) : this.read(from, child);
    const at = skipSpace(text, end);
    return text.charCodeAt(at) === COMMA ? skipSpace(text, at + 1) : at;
  }
}

/** The position behind the value that starts at `at`. Always advances, so that no text can hold a caller in a loop. */
function skipValue(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code === QUOTE) return skipString(text, at);
  if (code === OPEN_BRACE || code === OPEN_BRACKET) return skipRest(text, at + 1);
  let end = at + 1;
  while (end < text.length && !endsScalar(text.charCodeAt(end))) end++;
  return end;
}

/** The position behind the bracket that closes the container around `from`. */
function skipRest(text: string, from: number): number {
  let at = from;
  let depth = 1;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = skipString(text, at);
      continue;
    }
    at++;
    if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++;
    else if ((code === CLOSE_BRACE || code === CLOSE_BRACKET) && --depth === 0) return at;
  }
  return at;
}

function skipString(text: string, at: number): number {
  let end = at + 1;
  while (end < text.length) {
    const code = text.charCodeAt(end);
    if (code === QUOTE) return end + 1;
    end += code === BACKSLASH ? 2 : 1;
  }
  return end;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && text.charCodeAt(at) <= SPACE) at++;
  return at;
}

function endsScalar(code: number): boolean {
  return code <= SPACE || code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET || code === COLON;
}

/** What the JSON string from `at` to `end` stands for. */
function nameAt(text: string, at: number, end: number): string {
  const raw = text.slice(at + 1, end - 1);
  if (!raw.includes('\\')) return raw;
  try {
    return String(JSON.parse(`"${raw}"`));
  } catch {
    return raw;
  }
}

function numberAt(text: string, at: number): string | undefined {
  const code = text.charCodeAt(at);
  const isNumber = code === MINUS || (code >= 0x30 && code <= 0x39);
  return isNumber ? text.slice(at, skipValue(text, at)) : undefined;
}
