import { configure } from 'safe-stable-stringify';
import { escapeUnprintable } from './text.ts';

type Fields = Readonly<Record<string, unknown>>;

/** How lines look. */
export interface LineForm {
  readonly format: 'text' | 'json';
  /** Colours the level; text only. */
  readonly colour: boolean;
  /** The number of the worker, a field of all its lines. */
  readonly worker?: number;
}

/** What happened, and when; a plugin's message may be anything. */
interface LogEvent {
  readonly level: string;
  readonly time: string;
  readonly message: unknown;
}

/** @returns what makes the lines of a log, each with its line feed. */
export function lineWriter({ format, colour, worker }: LineForm): (event: LogEvent, fields: Fields) => string {
  const place = worker === undefined ? {} : { worker };
  const reserved = new Set([...RESERVED, ...Object.keys(place)]);
  if (format === 'text') return (event, fields) => lineText(event, plain(fields, { ...place }, reserved), colour);
  const names = new FieldNames(reserved);
  const placeText = worker === undefined ? '' : `,"worker":${worker}`;
  return ({ level, time, message }, fields) => {
    const members = simpleMembersOf(fields, names);
    if (members !== undefined && typeof message === 'string' && !NEEDS_ESCAPE.test(message))
      return `{"level":"${level}","time":"${time}"${placeText}${members},"msg":"${message}"}\n`;
    const all = plain(fields, { level, time, ...place }, reserved);
    all.msg = message;
    return `${escapeUnprintable(jsonOf(all))}\n`;
  };
}

/** Those of the line, and names that mean something to JavaScript. */
const RESERVED: ReadonlySet<string> = new Set(['level', 'time', 'msg', 'toJSON', '__proto__']);

/** Adds fields, which cannot pass for the line's own, with errors as one line of text and without their stacks. */
function plain(
  fields: Readonly<Record<string, unknown>>,
  line: Record<string, unknown>,
  reserved: ReadonlySet<string>,
): Record<string, unknown> {
  for (const key in fields) {
    const value = fields[key];
    line[reserved.has(key) ? `${key}_` : key] = value instanceof Error ? String(value) : value;
  }
  return line;
}

const odd = configure({ deterministic: false, maximumDepth: 5, maximumBreadth: 100 });

/** Whatever a plugin logs, circles and bigints included: a log does not fail whoever logs. */
function json(value: unknown): string | undefined {
  for (const stringify of [JSON.stringify, odd]) {
    try {
      return stringify(value);
    } catch {
      // The next one takes more.
    }
  }
  return '"[no JSON]"';
}

/** JSON would have to write these characters in another way, or {@link escapeUnprintable} might. */
const NEEDS_ESCAPE = /[^ !#-[\]-~]/;

/** Names that JSON would write in another way, or objects put before all others, as they do with numbers. */
const ODD_NAME = /^\d|[^ !#-[\]-~]/;

/** Names that are kept: those of the service and its plugins are few. */
const MOST_NAMES = 256;

/** Names of fields as they stand in a line, looked at once each. */
class FieldNames {
  readonly #known = new Map<string, string>();
  readonly #reserved: ReadonlySet<string>;

  constructor(reserved: ReadonlySet<string>) {
    this.#reserved = reserved;
  }

  /** @returns nothing for a name that has to stand there in another form. */
  jsonPrefix(name: string): string {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const text = this.#reserved.has(name) || ODD_NAME.test(name) ? '' : `,"${name}":`;
    if (this.#known.size < MOST_NAMES) this.#known.set(name, text);
    return text;
  }
}

/**
 * Fields as the members of a JSON object, each behind a comma. All of them must be texts and numbers that JSON writes
 * as they are, or objects of such. Nearly every line is such a one.
 */
function simpleMembersOf(
  fields: Readonly<Record<string, unknown>>,
  names: FieldNames,
  isInner = false,
): string | undefined {
  let text = '';
  for (const key in fields) {
    const value = fields[key];
    if (value === undefined) continue;
    const name = names.jsonPrefix(key);
    if (name === '') return undefined;
    if (typeof value === 'string') {
      if (NEEDS_ESCAPE.test(value)) return undefined;
      text += `${name}"${value}"`;
    } else if (typeof value === 'number') {
      if (!Number.isFinite(value)) return undefined;
      text += name + value;
    } else {
      const members = !isInner && isPlain(value) ? simpleMembersOf(value, names, true) : undefined;
      if (members === undefined) return undefined;
      text += `${name}{${members.slice(1)}}`;
    }
  }
  return text;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/** Member by member only where one of them has no JSON form: that takes longer. */
function jsonOf(members: Readonly<Record<string, unknown>>): string {
  try {
    return JSON.stringify(members);
  } catch {
    const each = Object.entries(members).map(([name, value]) => [JSON.stringify(name), json(value)]);
    return `{${each.flatMap(([name, text]) => (text === undefined ? [] : [`${name}:${text}`])).join(',')}}`;
  }
}

const COLOURS: Readonly<Record<string, number>> = { trace: 90, debug: 90, info: 32, warn: 33, error: 31, fatal: 31 };

function lineText(
  { level, time, message }: LogEvent,
  fields: Readonly<Record<string, unknown>>,
  colour: boolean,
): string {
  const name = level.toUpperCase();
  const shown = colour ? `\u001b[${COLOURS[level]}m${name}\u001b[39m` : name;
  let text = `${time} ${shown} ${escapeUnprintable(String(message ?? ''))}`;
  for (const key in fields) {
    const value = bare(fields[key]);
    if (value !== undefined) text += ` ${bare(key)}=${value}`;
  }
  return `${text}\n`;
}

const NEEDS_QUOTES = /^$|[\s"=\\\p{C}\p{Z}]/u;

/** A value as it is where it is one word, else as JSON; nothing where JSON has none for it. */
function bare(value: unknown): string | undefined {
  if (typeof value === 'string' && !NEEDS_QUOTES.test(value)) return value;
  const text = json(value);
  return text === undefined ? undefined : escapeUnprintable(text);
}
