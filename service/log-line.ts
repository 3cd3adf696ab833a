import { configure } from 'safe-stable-stringify';
import { TextMemo } from '../lib/bounded/text-memo.ts';
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
  const isText = format === 'text';
  const own = worker === undefined ? '' : isText ? ` worker=${worker}` : `,"worker":${worker}`;
  const isReserved = (name: string) => RESERVED.has(name) || (own !== '' && name === 'worker');
  // A field cannot pass for the line's own.
  const names = new TextMemo<string>();
  const nameOf = (key: string) => {
    const name = isReserved(key) ? `${key}_` : key;
    return isText ? ` ${bare(name)}=` : `,${json(name)}:`;
  };
  const textOf = isText ? bare : json;
  return (event, fields) => {
    let line = (isText ? textHead(event, colour) : `{"level":"${event.level}","time":"${event.time}"`) + own;
    for (const key in fields) {
      const value = textOf(fields[key]);
      if (value !== undefined) line += names.of(key, nameOf) + value;
    }
    return isText ? `${line}\n` : `${line},"msg":${json(event.message) ?? 'null'}}\n`;
  };
}

const odd = configure({ deterministic: false, maximumDepth: 5, maximumBreadth: 100 });
/** What JSON writes as it is. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** Whatever a plugin logs, circles and bigints included: a log does not fail whoever logs. An error is its text without the stack. */
function json(value: unknown): string | undefined {
  if (typeof value === 'string' && PLAIN.test(value)) return `"${value}"`;
  for (const stringify of [JSON.stringify, odd]) {
    try {
      const text = stringify(value instanceof Error ? String(value) : value);
      return text === undefined ? undefined : escapeUnprintable(text);
    } catch {
      // The next one takes more.
    }
  }
  return '"[no JSON]"';
}

const COLOURS: Readonly<Record<string, number>> = { trace: 90, debug: 90, info: 32, warn: 33, error: 31, fatal: 31 };

function textHead({ level, time, message }: LogEvent, colour: boolean): string {
  const name = level.toUpperCase();
  const shown = colour ? `\u001b[${COLOURS[level]}m${name}\u001b[39m` : name;
  return `${time} ${shown} ${escapeUnprintable(String(message ?? ''))}`;
}

const NEEDS_QUOTES = /^$|[\s"=\\\p{C}\p{Z}]/u;

/** A value as it is where it is one word, else as JSON; nothing where JSON has none for it. */
function bare(value: unknown): string | undefined {
  return typeof value === 'string' && !NEEDS_QUOTES.test(value) ? value : json(value);
}
