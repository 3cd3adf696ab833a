import type { Place } from '../exact-number.ts';
import { PathError } from './budget.ts';

export type Selector =
  | { readonly kind: 'name'; readonly name: string; readonly index: number }
  | { readonly kind: 'wildcard' }
  | { readonly kind: 'slice'; readonly start?: number; readonly end?: number; readonly step: number };

export interface Segment {
  /** Whether the selectors apply to all values below, too (`..`). */
  readonly descends: boolean;
  readonly selectors: readonly Selector[];
}

const DOT_NAME = /[^.[\]()'"`~^?*,;]+/y;
const BARE_NAME = /[^[\]()'"`~^?*,;:]+/y;
const QUOTED = /'((?:[^'\\]|\\['"\\])*)'|"((?:[^"\\]|\\['"\\])*)"/y;
const SLICE = /(-?\d+)?:(-?\d+)?(?::(-?\d+)?)?/y;
const SPACES = /[ \t\r\n]*/y;
const ARRAY_INDEX = /^(?:0|[1-9]\d{0,9})$/;

/** @throws PathError */
export function parse(text: string): Segment[] {
  const reader = new Reader(text);
  const segments: Segment[] = [];
  if (text.startsWith('$')) {
    reader.at = 1;
    if (!reader.atEnd() && !reader.sees('.') && !reader.sees('[')) throw reader.error('expected "." or "[" behind "$"');
  } else {
    segments.push({ descends: false, selectors: [named(reader.dotName('expected "$" or a name'))] });
  }
  while (!reader.atEnd()) segments.push(segment(reader));
  return segments;
}

function segment(reader: Reader): Segment {
  const descends = reader.take('..');
  if (reader.sees('[') && (descends || !reader.sees('.'))) return { descends, selectors: bracketed(reader) };
  if (!descends && !reader.take('.')) throw reader.error('expected "." or "["');
  if (reader.take('*')) return { descends, selectors: [{ kind: 'wildcard' }] };
  return { descends, selectors: [named(reader.dotName('expected a name or "*"'))] };
}

function bracketed(reader: Reader): Selector[] {
  const selectors: Selector[] = [];
  reader.take('[');
  do {
    reader.match(SPACES);
    selectors.push(selector(reader));
    reader.match(SPACES);
  } while (reader.take(','));
  if (!reader.take(']')) throw reader.error('expected "]"');
  return selectors;
}

function selector(reader: Reader): Selector {
  if (reader.take('*')) return { kind: 'wildcard' };
  const quoted = reader.match(QUOTED);
  if (quoted !== null) return named((quoted[1] ?? quoted[2] ?? '').replace(/\\(.)/gs, '$1'));
  const slice = reader.match(SLICE);
  if (slice !== null) return sliced(slice[1], slice[2], slice[3]);
  const name = reader.match(BARE_NAME)?.[0].trim();
  if (name === undefined || name === '') throw reader.error('expected a name, an index or "*"');
  return named(name);
}

function named(name: string): Selector {
  return { kind: 'name', name, index: ARRAY_INDEX.test(name) ? Number(name) : -1 };
}

function sliced(start: string | undefined, end: string | undefined, step: string | undefined): Selector {
  return {
    kind: 'slice',
    ...(start === undefined ? {} : { start: Number(start) }),
    ...(end === undefined ? {} : { end: Number(end) }),
    step: step === undefined ? 1 : Number(step),
  };
}

/** A position in the text of a path. */
class Reader {
  readonly text: string;
  at = 0;

  constructor(text: string) {
    this.text = text;
  }

  atEnd(): boolean {
    return this.at === this.text.length;
  }

  sees(expected: string): boolean {
    return this.text.startsWith(expected, this.at);
  }

  take(expected: string): boolean {
    const seen = this.sees(expected);
    if (seen) this.at += expected.length;
    return seen;
  }

  match(sticky: RegExp): RegExpExecArray | null {
    sticky.lastIndex = this.at;
    const match = sticky.exec(this.text);
    if (match !== null) this.at = sticky.lastIndex;
    return match;
  }

  dotName(otherwise: string): string {
    const name = this.match(DOT_NAME)?.[0];
    if (name === undefined) throw this.error(otherwise);
    return name;
  }

  error(what: string): PathError {
    return new PathError(`${what} at character ${this.at + 1}`);
  }
}

/** Whether the segments can match one value at most, whatever the document. */
export function isDefinite(segments: readonly Segment[]): boolean {
  return segments.every(selectsOne);
}

function selectsOne({ descends, selectors: [selector, ...others] }: Segment): boolean {
  if (descends || selector === undefined || others.length > 0) return false;
  return selector.kind === 'name' || (selector.kind === 'slice' && selector.start === -1 && selector.end === undefined);
}

/** The steps of segments that are but a name or an index each: the name for objects, the index for arrays. */
export function placeOf(segments: readonly Segment[]): Place | undefined {
  const place = segments.map(({ descends, selectors: [selector, ...others] }) => {
    if (descends || selector?.kind !== 'name' || others.length > 0) return undefined;
    const { name, index } = selector;
    return index < 0 ? [name] : [name, index];
  });
  return place.every((step) => step !== undefined) ? place : undefined;
}

/**
 * Splits a comma-separated list and trims its members; empty members stay. Commas inside brackets, parentheses and quotes
 * belong to their member.
 */
export function splitList(text: string): string[] {
  const members: string[] = [];
  let start = 0;
  let depth = 0;
  let quote = '';
  for (let i = 0; i < text.length; i++) {
    const character = text.charAt(i);
    if (quote !== '') {
      if (character === '\\') i++;
      else if (character === quote) quote = '';
    } else if (character === "'" || character === '"') quote = character;
    else if (character === '[' || character === '(') depth++;
    else if (character === ']' || character === ')') depth = Math.max(0, depth - 1);
    else if (character === ',' && depth === 0) {
      members.push(text.slice(start, i).trim());
      start = i + 1;
    }
  }
  members.push(text.slice(start).trim());
  return members;
}
