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

/** Those of the line, and names that mean something to JavaScript. */
const RESERVED: ReadonlySet<string> = new Set(['level', 'time', 'msg', 'toJSON', '__proto__']);

/** @returns what makes the lines of a log, each with its line feed. */
export function lineWriter({ format, colour, worker }: LineForm): (event: LogEvent, fields: Fields) => string {
  const own = worker === undefined ? {} : { worker };
  const reserved = new Set([...RESERVED, ...Object.keys(own)]);
  return ({ level, time, message }, fields) => {
    const members: Record<string, unknown> = format === 'json' ? { level, time, ...own } : { ...own };
    for (const key in fields) {
      const value = fields[key];
      // A field cannot pass for the line's own, and an error is a line of text without its stack.
      members[reserved.has(key) ? `${key}_` : key] = value instanceof Error ? String(value) : value;
    }
    if (format === 'text') return lineText({ level, time, message }, members, colour);
    members.msg = message;
    return `${escapeUnprintable(jsonOf(members))}\n`;
  };
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

/** Member by member only where one of them has no JSON form: that takes longer. */
function jsonOf(members: Fields): string {
  try {
    return JSON.stringify(members);
  } catch {
    const each = Object.entries(members).map(([name, value]) => [JSON.stringify(name), json(value)]);
    return `{${each.flatMap(([name, text]) => (text === undefined ? [] : [`${name}:${text}`])).join(',')}}`;
  }
}

const COLOURS: Readonly<Record<string, number>> = { trace: 90, debug: 90, info: 32, warn: 33, error: 31, fatal: 31 };

function lineText({ level, time, message }: LogEvent, fields: Fields, colour: boolean): string {
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
