import { endOfContainers, endOfUncheckedString, skipSpace } from '../../lib/json/skip.ts';

const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const NINE = 0x39;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const LETTER_U = 0x75;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

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
 * @param json text, or quicker its bytes in UTF-8
 * @param locations nothing is found where there is none.
 */
export function exactNumbersAt(
  json: string | Buffer,
  locations: readonly (Location | undefined)[],
): readonly (string | undefined)[] {
  const places = locations.map((location) => location?.map((step) => [step]));
  return read(json, places, (bytes, node) => tokenOf(bytes, node));
}

/** A value of a JSON text: for a list or object an empty one, for a number also its source text. */
export interface Found {
  readonly value: unknown;
  readonly token: string | undefined;
}

/** Where a value is: of each step the names that a member may have, and the indices that an element may have. */
export type Place = readonly Location[];

/** The values at some places in a JSON text, which is read once and of which nothing else is made. */
export function valuesAt(json: string | Buffer, places: readonly Place[]): readonly (Found | undefined)[] {
  return read(json, places, (bytes, node) => ({ value: parsedAt(bytes, node), token: tokenOf(bytes, node) }));
}

function read<T>(
  json: string | Buffer,
  places: readonly (Place | undefined)[],
  take: (bytes: Buffer, node: ValueNode) => T,
): readonly (T | undefined)[] {
  const root = new ValueNode();
  const targets = places.map((place) => (place && place.length <= MAX_DEPTH ? root.along(place) : undefined));
  const bytes = typeof json === 'string' ? Buffer.from(json) : json;
  try {
    new Reader(bytes).read(0, root);
  } catch (error) {
    // The text is no JSON.
    if (!(error instanceof SyntaxError)) throw error;
  }
  return targets.map((node) => (node?.isCurrent() ? take(bytes, node) : undefined));
}

function tokenOf(bytes: Buffer, { start, end }: ValueNode): string | undefined {
  const first = bytes[start] ?? 0;
  return first >= MINUS && first <= NINE ? bytes.toString('latin1', start, end) : undefined;
}

function parsedAt(bytes: Buffer, { start, end }: ValueNode): unknown {
  if (bytes[start] === OPEN_BRACKET) return [];
  if (bytes[start] === OPEN_BRACE) return {};
  return JSON.parse(bytes.toString('utf8', start, end));
}

/** What is wanted of an object or a list. It is known before one is read: as many may come as the text has room for. */
interface Wanted {
  /** By name or index. */
  readonly children: ReadonlyMap<string | number, ValueNode>;
  /** Bytes of the names. */
  readonly lengths: ReadonlySet<number>;
  /** The highest index. */
  readonly last: number;
}

/** A value that is wanted, or that leads to wanted ones. */
class ValueNode {
  readonly #parent: ValueNode | undefined;
  #children: Map<string | number, ValueNode> | undefined;
  #wanted: Wanted | undefined;
  /** When it was last read: visits are numbered, and those of children lie within those of their parents. */
  visit = 0;
  start = 0;
  end = 0;

  constructor(parent?: ValueNode) {
    this.#parent = parent;
  }

  along(place: Place): ValueNode {
    let node: ValueNode = this;
    for (const step of place) {
      node.#children ??= new Map();
      const children: Map<string | number, ValueNode> = node.#children;
      const child: ValueNode =
        step.map((key) => children.get(key)).find((known) => known !== undefined) ?? new ValueNode(node);
      for (const key of step) children.set(key, child);
      node = child;
    }
    return node;
  }

  /** Nothing where the value itself is wanted, and nothing in it. To be asked when all places are known. */
  get wanted(): Wanted | undefined {
    const children = this.#children;
    if (children === undefined) return undefined;
    this.#wanted ??= {
      children,
      lengths: new Set(Array.from(children.keys(), (name) => Buffer.byteLength(String(name)))),
      last: Math.max(...Array.from(children.keys(), (index) => (typeof index === 'number' ? index : -1))),
    };
    return this.#wanted;
  }

  /** One that was read before its parent belongs to an earlier member of the same name, and the last member counts. */
  isCurrent(): boolean {
    const parent = this.#parent;
    return this.visit > 0 && (parent === undefined || (this.visit > parent.visit && parent.isCurrent()));
  }
}

/** Reads JSON that is known to be valid. In any other text it finds something meaningless, and comes to an end. */
class Reader {
  readonly #json: Buffer;
  #visits = 0;
  /** Escapes of the key that was read last: those of four digits, and those of one letter. */
  #long = 0;
  #short = 0;

  constructor(json: Buffer) {
    this.#json = json;
  }

  /** @returns the position behind the value */
  read(from: number, node: ValueNode | undefined): number {
    const start = skipSpace(this.#json, from);
    if (node === undefined) return this.#endOfValue(start);
    node.visit = ++this.#visits;
    node.start = start;
    const { wanted } = node;
    const first = this.#json[start];
    if (wanted !== undefined && first === OPEN_BRACE) node.end = this.#readObject(start + 1, wanted);
    else if (wanted !== undefined && first === OPEN_BRACKET) node.end = this.#readArray(start + 1, wanted);
    else node.end = this.#endOfValue(start);
    return node.end;
  }

  #readObject(from: number, { children, lengths }: Wanted): number {
    const json = this.#json;
    let at = skipSpace(json, from);
    while (json[at] === QUOTE) {
      const end = this.#endOfKey(at);
      // Most keys are not wanted, and a string for each would cost more than everything else.
      const child = this.#isAsLong(end - at - 2, lengths) ? children.get(this.#keyOf(at, end)) : undefined;
      at = skipSpace(json, this.read(skipSpace(json, end) + 1, child));
      if (json[at] === COMMA) at = skipSpace(json, at + 1);
    }
    return at + 1;
  }

  #readArray(from: number, { children, last }: Wanted): number {
    const json = this.#json;
    let at = skipSpace(json, from);
    if (json[at] === CLOSE_BRACKET) return at + 1;
    for (let i = 0; i <= last; i++) {
      at = skipSpace(json, this.read(at, children.get(i)));
      if (json[at] !== COMMA) return at + 1;
      at += 1;
    }
    return this.#endOfContainer(at);
  }

  #endOfKey(from: number): number {
    const json = this.#json;
    this.#long = 0;
    this.#short = 0;
    let at = from + 1;
    for (let byte = json[at]; byte !== QUOTE && byte !== undefined; byte = json[at]) {
      if (byte === BACKSLASH) {
        at += 1;
        if (json[at] === LETTER_U) this.#long += 1;
        else this.#short += 1;
      }
      at += 1;
    }
    return at + 1;
  }

  /** Whether the key, which has so many bytes as it is written, may have one of some lengths. An escape of six bytes stands for one to three. */
  #isAsLong(written: number, lengths: ReadonlySet<number>): boolean {
    if (this.#long + this.#short === 0) return lengths.has(written);
    const most = written - this.#short - 3 * this.#long;
    const least = most - 2 * this.#long;
    for (const length of lengths) if (length >= least && length <= most) return true;
    return false;
  }

  #keyOf(start: number, end: number): string {
    if (this.#long + this.#short > 0) return JSON.parse(this.#json.toString('utf8', start, end));
    return this.#json.toString('utf8', start + 1, end - 1);
  }

  #endOfValue(start: number): number {
    const json = this.#json;
    const first = json[start];
    if (first === QUOTE) return endOfUncheckedString(json, start + 1);
    if (first === OPEN_BRACE || first === OPEN_BRACKET) return this.#endOfContainer(start + 1);
    let at = start;
    while (isOfWord(json[at] ?? 0)) at += 1;
    return at;
  }

  /** @param from somewhere in it */
  #endOfContainer(from: number): number {
    return endOfContainers(this.#json, from, 1) ?? this.#json.length;
  }
}

/** Whether a number or literal may hold it. */
function isOfWord(byte: number): boolean {
  return (byte > COMMA && byte < CLOSE_BRACE && byte !== CLOSE_BRACKET) || byte === PLUS;
}
