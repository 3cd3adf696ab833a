import { closing } from './brackets.ts';
import { PathError } from './budget.ts';
import { isScript, scriptFault } from './filters.ts';
import type { Placeholders } from './placeholders.ts';

/** One selector of a segment: a name, an index, a slice, `*`, a filter or a script. */
export interface Selector {
  /** The selector in jsonpath-plus's form. */
  readonly token: string;
  /** A member's name or an element's index. */
  readonly name?: string;
  /** Whether it is in brackets without quotes. */
  readonly isBare?: boolean;
}

/** One step of a path, with its selectors. */
export interface Segment {
  /** Whether the selectors also apply to all values below (`..`). */
  readonly descends: boolean;
  readonly selectors: readonly Selector[];
}

const DOT_NAME = /[^.[\]()'"`~^?*,;]+/y;
const BARE_NAME = /[^[\]()'"`~^?*,;:]+/y;
const QUOTED = /'((?:[^'\\]|\\['"\\])*)'|"((?:[^"\\]|\\['"\\])*)"/y;
const SLICE = /(?:-?\d+)?:(?:-?\d+)?(?::(?:-?\d+)?)?/y;
const SPACES = /[ \t\r\n]*/y;
const WILDCARD: Selector = { token: '*' };

/**
 * Parses a path into segments.
 * @param text the path, in which marks are the placeholders.
 * @throws PathError
 */
export function parse(text: string, placeholders: Placeholders): Segment[] {
  const reader = new Reader(text, placeholders);
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
  if (reader.sees('(') || reader.sees('?'))
    throw new PathError('a "(" or "?" must be in quotes, or in a filter [?(…)]');
  if (!descends && !reader.take('.')) throw reader.error('expected "." or "["');
  if (reader.take('*')) return { descends, selectors: [WILDCARD] };
  return { descends, selectors: [named(reader.dotName('expected a name or "*"'))] };
}

function bracketed(reader: Reader): Selector[] {
  const script = scriptIn(reader);
  if (script !== undefined) return [{ token: script }];
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

/** Reads a filter or script, which must be the only content of its brackets. */
function scriptIn(reader: Reader): string | undefined {
  const end = closing(reader.text, reader.at);
  const content = reader.text.slice(reader.at + 1, end);
  if (!isScript(content)) return undefined;
  if (end === undefined) throw new PathError('the brackets do not come in pairs');
  const script = reader.placeholders.unquoted(content);
  const fault = scriptFault(script);
  if (fault !== undefined) throw new PathError(reader.placeholders.source(`[${script}]: ${fault}`));
  reader.at = end + 1;
  return script;
}

function selector(reader: Reader): Selector {
  if (reader.take('*')) return WILDCARD;
  const quoted = reader.match(QUOTED);
  if (quoted !== null) return named((quoted[1] ?? quoted[2] ?? '').replace(/\\(.)/gs, '$1'));
  const slice = reader.match(SLICE);
  if (slice !== null) return { token: slice[0] };
  const name = reader.match(BARE_NAME)?.[0].trim();
  if (name === undefined || name === '') throw reader.error('expected a name, an index or "*"');
  return { ...named(name), isBare: true };
}

/** Makes the selector of a member. */
export function named(name: string): Selector {
  return { name, token: quotedName(name) };
}

/** Quotes a name, so that the library does not take it for anything else. */
export function quotedName(name: string): string {
  return `'${name.replace(/['"\\]/g, '\\$&')}'`;
}

/** A position in the text of a path. */
class Reader {
  readonly text: string;
  readonly placeholders: Placeholders;
  at = 0;

  constructor(text: string, placeholders: Placeholders) {
    this.text = text;
    this.placeholders = placeholders;
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
    return new PathError(`${what} at character ${this.placeholders.source(this.text.slice(0, this.at)).length + 1}`);
  }
}
