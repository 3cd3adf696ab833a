import type { Steps } from './turns.ts';

/** The keys of one object, by their positions in it. */
export interface Keys {
  readonly count: number;
  /** The order of two keys by UTF-16 code units (RFC 8785, section 3.2.3): negative, 0 or positive. */
  compare(a: number, b: number): number;
  /**
   * A few characters of a key from some place on, as a number of 35 bits in their order. An even one holds the key's end,
   * so that keys with the same one are the same.
   */
  wordAt(position: number, place: number): number;
}

/** What a position takes of the 53 bits of a double; a word takes the others. */
const POSITION = 2 ** 18;
/** A code unit, or the end. */
const UNIT = 2 ** 17;
/** Keys up to which insertion is quicker than all else. */
const FEW = 16;
/** Keys between two turns of other work. */
const STEP = 16_384;
/** In the order, in place of a key that comes again. */
const DROPPED = -1;

/** Keys that stand in UTF-8, without escapes. */
export class KeysInBytes implements Keys {
  readonly count: number;
  readonly #bytes: Uint8Array;
  readonly #bounds: readonly number[];

  /** @param bounds where each key begins and ends */
  constructor(bytes: Uint8Array, bounds: readonly number[]) {
    this.count = bounds.length / 2;
    this.#bytes = bytes;
    this.#bounds = bounds;
  }

  compare(a: number, b: number): number {
    return compareUtf8(this.#bytes, this.#startOf(a), this.#endOf(a), this.#startOf(b), this.#endOf(b));
  }

  wordAt(position: number, place: number): number {
    const end = this.#endOf(position);
    let at = this.#startOf(position) + 4 * place;
    let word = 0;
    // No byte of a key is 0: control characters are escaped.
    for (const stop = at + 4; at < stop; at++) word = word * 256 + (at < end ? rank(this.#bytes[at] ?? 0) : 0);
    return word * 2 + (at > end ? 0 : 1);
  }

  #startOf(position: number): number {
    return this.#bounds[2 * position] ?? 0;
  }

  #endOf(position: number): number {
    return this.#bounds[2 * position + 1] ?? 0;
  }
}

/** The order by UTF-16 code units of two keys in UTF-8 without escapes: negative, 0 or positive. */
export function compareUtf8(bytes: Uint8Array, a: number, aEnd: number, b: number, bEnd: number): number {
  const length = Math.min(aEnd - a, bEnd - b);
  for (let i = 0; i < length; i++) {
    const left = bytes[a + i] ?? 0;
    const right = bytes[b + i] ?? 0;
    if (left !== right) return rank(left) - rank(right);
  }
  return aEnd - a - (bEnd - b);
}

/** What UTF-16 writes with surrogates, which in UTF-8 begins with 0xf0 or more, comes before U+E000 to U+FFFF (0xee, 0xef). */
function rank(byte: number): number {
  if (byte < 0xee) return byte;
  return byte < 0xf0 ? byte + 5 : byte - 2;
}

/** Keys as strings. */
export class KeysInText implements Keys {
  readonly count: number;
  readonly #keys: readonly string[];

  constructor(keys: readonly string[]) {
    this.count = keys.length;
    this.#keys = keys;
  }

  compare(a: number, b: number): number {
    const [left = '', right = ''] = [this.#keys[a], this.#keys[b]];
    return left < right ? -1 : Number(left > right);
  }

  wordAt(position: number, place: number): number {
    const key = this.#keys[position] ?? '';
    const at = 2 * place;
    const unit = (i: number) => (i < key.length ? key.charCodeAt(i) + 1 : 0);
    return (unit(at) * UNIT + unit(at + 1)) * 2 + (at + 2 > key.length ? 0 : 1);
  }
}

/** The positions of keys in the order of the keys; of equal ones the last alone, as in JSON.parse. At most 262,144 keys. */
export function* orderOf(keys: Keys): Steps<readonly number[]> {
  return keys.count <= FEW ? inserted(keys) : yield* sorted(keys);
}

function inserted(keys: Keys): number[] {
  const order: number[] = [];
  for (let position = 0; position < keys.count; position++) {
    let place = order.length;
    let comparison = 1;
    while (place > 0) {
      comparison = keys.compare(position, order[place - 1] ?? 0);
      if (comparison >= 0) break;
      place -= 1;
    }
    if (comparison === 0) order[place - 1] = position;
    else order.splice(place, 0, position);
  }
  return order;
}

/** A run of keys that are equal before a place. */
interface Run {
  readonly from: number;
  readonly to: number;
  readonly place: number;
}

/** A radix sort, word by word: half the time of sorting strings, and it can stop in between. */
function* sorted(keys: Keys): Steps<readonly number[]> {
  const order = Array.from({ length: keys.count }, (_, position) => position);
  const runs: Run[] = [{ from: 0, to: keys.count, place: 0 }];
  let unyielded = 0;
  for (let run = runs.pop(); run !== undefined; run = runs.pop()) {
    runs.push(...sortRun(keys, order, run));
    unyielded += run.to - run.from;
    if (unyielded < STEP) continue;
    unyielded = 0;
    yield;
  }
  return order.filter((position) => position !== DROPPED);
}

/** Sorts a run of the order by the next word, and returns the runs that are still undecided. */
function sortRun(keys: Keys, order: number[], { from, to, place }: Run): Run[] {
  const words = new Float64Array(to - from);
  for (let i = from; i < to; i++) {
    const position = order[i] ?? 0;
    words[i - from] = keys.wordAt(position, place) * POSITION + position;
  }
  words.sort();
  const undecided: Run[] = [];
  for (let start = 0; start < words.length; ) {
    const first = words[start] ?? 0;
    const word = Math.floor(first / POSITION);
    let end = start;
    for (; Math.floor((words[end] ?? -1) / POSITION) === word; end++) order[from + end] = (words[end] ?? 0) % POSITION;
    if (end - start > 1) {
      if (word % 2 === 0) order.fill(DROPPED, from + start, from + end - 1);
      else undecided.push({ from: from + start, to: from + end, place: place + 1 });
    }
    start = end;
  }
  return undecided;
}
