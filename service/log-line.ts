import { configure } from 'safe-stable-stringify';
import { escapeUnprintable } from './text.ts';

type Fields = Readonly<Record<string, unknown>>;
type Member = readonly [name: string, value: unknown];

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
  const own: Member[] = worker === undefined ? [] : [['worker', worker]];
  // A field cannot pass for the line's own.
  const isReserved = (name: string) => RESERVED.has(name) || own.some(([each]) => each === name);
  return (event, fields) => {
    const given = Object.entries(fields).map(([name, value]): Member => [isReserved(name) ? `${name}_` : name, value]);
    const members = [...own, ...given];
    return format === 'json' ? jsonLine(event, members) : textLine(event, members, colour);
  };
}

function jsonLine({ level, time, message }: LogEvent, members: readonly Member[]): string {
  let line = `{"level":"${level}","time":"${time}"`;
  for (const [name, value] of members) {
    const text = json(value);
    if (text !== undefined) line += `,${json(name)}:${text}`;
  }
  return `${line},"msg":${json(message) ?? 'null'}}\n`;
}

const COLOURS: Readonly<Record<string, number>> = { debug: 90, info: 32, warn: 33, error: 31 };

function textLine({ level, time, message }: LogEvent, members: readonly Member[], colour: boolean): string {
  const name = level.toUpperCase();
  const shown = colour ? `\u001b[${COLOURS[level]}m${name}\u001b[39m` : name;
  let line = `${time} ${shown} ${escapeUnprintable(String(message ?? ''))}`;
  for (const [name, value] of members) {
    const text = bare(value);
    if (text !== undefined) line += ` ${bare(name)}=${text}`;
  }
  return `${line}\n`;
}

const stringify = configure({ deterministic: false, maximumDepth: 5, maximumBreadth: 100 });

/** Whatever a plugin logs, circles and bigints included: a log does not fail whoever logs. An error is its text without the stack. */
function json(value: unknown): string | undefined {
  try {
    const text = stringify(value instanceof Error ? String(value) : value);
    return text === undefined ? undefined : escapeUnprintable(text);
  } catch {
    return '"[no JSON]"';
  }
}

const NEEDS_QUOTES = /^$|[\s"=\\\p{C}\p{Z}]/u;

/** A value as it is where it is one word, else as JSON; nothing where JSON has none for it. */
function bare(value: unknown): string | undefined {
  return typeof value === 'string' && !NEEDS_QUOTES.test(value) ? value : json(value);
}
