import { configure } from 'safe-stable-stringify';
import { escapeUnprintable } from './text.ts';

/** The form of a log's lines. */
export interface LineForm {
  readonly format: 'text' | 'json';
  /** Colours the level; text only. */
  readonly colour: boolean;
  /** The number of the worker, a field of all its lines. */
  readonly worker?: number;
}

/** Field names that a plugin cannot use: those of the line itself, and those with a meaning in JavaScript. */
const RESERVED: ReadonlySet<string> = new Set(['level', 'time', 'msg', 'toJSON', '__proto__']);

/** Returns a function that makes log lines, each with its line feed. It accepts any message, since plugins pass anything. */
export function lineWriter({ format, colour, worker }: LineForm) {
  const [lineOf, memberOf] = format === 'json' ? [jsonLine, jsonMember] : [textLine, textMember];
  const own = worker === undefined ? '' : memberOf('worker', worker);
  // A reserved name gets a `_`, so that a plugin's field cannot pass for the line's own.
  const isReserved = (name: string) => RESERVED.has(name) || (own !== '' && name === 'worker');
  return (level: string, message: unknown, fields: Readonly<Record<string, unknown>>): string => {
    let members = own;
    for (const name of Object.keys(fields)) members += memberOf(isReserved(name) ? `${name}_` : name, fields[name]);
    return `${lineOf(new Date().toISOString(), level, message, members, colour)}\n`;
  };
}

function jsonLine(time: string, level: string, message: unknown, members: string): string {
  return escapeUnprintable(`{"level":"${level}","time":"${time}"${members},"msg":${json(message) ?? 'null'}}`);
}

function jsonMember(name: string, value: unknown): string {
  const text = json(value);
  return text === undefined ? '' : `,${JSON.stringify(name)}:${text}`;
}

const COLOURS: Readonly<Record<string, number>> = { debug: 90, info: 32, warn: 33, error: 31 };

function textLine(time: string, level: string, message: unknown, members: string, colour: boolean): string {
  const name = level.toUpperCase();
  const shown = colour ? `\u001b[${COLOURS[level]}m${name}\u001b[39m` : name;
  const text = typeof message === 'string' ? message : (json(message) ?? '');
  return `${time} ${shown} ${escapeUnprintable(text)}${members}`;
}

function textMember(name: string, value: unknown): string {
  const text = bare(value);
  return text === undefined ? '' : ` ${bare(name)}=${text}`;
}

/** Shows at most 100 members of an object in a field, five levels deep, and counts the rest. */
const stringify = configure({ deterministic: false, maximumDepth: 5, maximumBreadth: 100 });

/** Returns JSON for any value, circles and bigints included, and never throws at the log's caller. Errors lose their stack. */
function json(value: unknown): string | undefined {
  if (typeof value === 'string') return JSON.stringify(value);
  try {
    return value === undefined ? undefined : stringify(value instanceof Error ? String(value) : value);
  } catch {
    return '"[no JSON]"';
  }
}

const NEEDS_QUOTES = /^$|[\s"=\\\p{C}\p{Z}]/u;

/** Returns a one-word text as it is, any other value as JSON, and undefined where JSON has no form for it. */
function bare(value: unknown): string | undefined {
  if (typeof value === 'string' && !NEEDS_QUOTES.test(value)) return value;
  const text = json(value);
  return text && escapeUnprintable(text);
}
