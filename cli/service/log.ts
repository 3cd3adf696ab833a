import { isatty } from 'node:tty';
import { configure } from 'safe-stable-stringify';
import type { Log } from '../../plugins-sdk/log.ts';
import { escapeUnprintable } from '../text.ts';
import { endsWithinLine, LogSink } from './log-sink.ts';

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
const FORMATS = ['text', 'json'] as const;

export type LogLevel = (typeof LEVELS)[number];
type LogFormat = (typeof FORMATS)[number];
type Environment = Readonly<Record<string, string | undefined>>;

/** How the log looks. */
export interface LogSettings {
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** Colours the level; text only. */
  readonly colour: boolean;
  /** The number of the worker, a field of all its lines. */
  readonly worker?: number;
}

/** The log of a service, as far as it knows how it looks. */
export interface ServiceLog extends Log {
  readonly format?: LogFormat;
  /** From now on. */
  setLevel?(level: LogLevel): void;
}

/** The log of a process. */
export interface ProcessLog extends ServiceLog {
  setLevel(level: LogLevel): void;
  /** Writes a line that another process has made, with its line feed. */
  pass(line: string): void;
  /** Writes out what waits, now. Happens by itself when the process exits. */
  flush(): void;
  /** Resolves once everything is written; waits a second at most. */
  drain(): Promise<void>;
}

/** Where lines go, each with its line feed. */
export interface LogDestination {
  write(line: string): void;
  flushSync?(): void;
  drain?(): Promise<void>;
}

/**
 * The settings in the variables `LOG_LEVEL` (default `info`), `LOG_FORMAT` (default `text`) and `NO_COLOR`; an empty
 * variable counts as unset.
 * @throws Error naming the variable and its choices.
 */
export function logSettings(env: Environment): LogSettings {
  return {
    level: choice(env, 'LOG_LEVEL', LEVELS, 'info'),
    format: choice(env, 'LOG_FORMAT', FORMATS, 'text'),
    colour: isatty(1) && !env.NO_COLOR && env.TERM !== 'dumb',
  };
}

function choice<T extends string>(env: Environment, variable: string, choices: readonly T[], otherwise: T): T {
  const value = env[variable];
  if (!value) return otherwise;
  const chosen = choices.find((candidate) => candidate === value);
  if (chosen === undefined) throw new Error(`${variable} must be one of ${choices.join(', ')}, not "${value}"`);
  return chosen;
}

/**
 * A log on stdout, or at the destination given. Every event is one line: in text `<ISO time> <LEVEL> <message> key=value …`,
 * in JSON an object with `level`, `time` (ISO), `msg` and the fields. Lines are out within 100 ms and at exit.
 */
export function createLog(settings: LogSettings, destination?: LogDestination): ProcessLog {
  const target =
    destination ?? standardOutput((count, reason) => log.warn(`log lines dropped: ${whyDropped(reason)}`, { count }));
  const { format, colour, worker } = settings;
  const place = worker === undefined ? {} : { worker };
  const reserved = new Set([...RESERVED, ...Object.keys(place)]);
  let lowest = LEVELS.indexOf(settings.level);
  const at = (level: keyof Log) => {
    const rank = LEVELS.indexOf(level);
    return (message: string, fields: Readonly<Record<string, unknown>> = {}) => {
      if (rank < lowest) return;
      const time = isoTime();
      if (format === 'text') {
        const own = plain(fields, { ...place }, reserved);
        target.write(textOf({ level, time, message: String(message ?? '') }, own, colour));
        return;
      }
      const members = plain(fields, { level, time, ...place }, reserved);
      members.msg = message;
      target.write(`${simpleJsonOf(members) ?? escapeUnprintable(jsonOf(members))}\n`);
    };
  };
  const log: ProcessLog = {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    format,
    setLevel: (level) => {
      lowest = LEVELS.indexOf(level);
    },
    pass: (line) => target.write(line),
    flush: () => target.flushSync?.(),
    drain: async () => target.drain?.(),
  };
  return log;
}

let second = 0;
let secondText = '';

/** Lines of one second share the text up to the point: making it costs as much as a line. */
function isoTime(): string {
  const now = Date.now();
  const milliseconds = now % 1000;
  if (now - milliseconds !== second) {
    second = now - milliseconds;
    secondText = new Date(second).toISOString().slice(0, -4);
  }
  return `${secondText}${String(milliseconds).padStart(3, '0')}Z`;
}

const DROPPED: Readonly<Record<string, string>> = {
  EAGAIN: 'the reader is too slow',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file has reached its largest size',
};

function whyDropped(reason: string | undefined): string {
  if (reason === undefined) return 'a line is too long';
  return DROPPED[reason] ?? `they cannot be written (${reason})`;
}

function standardOutput(dropped: (count: number, reason: string | undefined) => void): LogSink {
  for (const stream of [process.stdout, process.stderr]) doNotBlock(stream);
  const sink = new LogSink(1, dropped);
  if (endsWithinLine(1)) sink.write('\n');
  process.on('exit', () => sink.flushSync());
  return sink;
}

/**
 * Keeps a reader that stalls from holding up the process and its exit. For a pipe it is enough to touch the stream, which makes
 * node set it to non-blocking; a terminal, which Ctrl-S stops, node would write to in blocking mode.
 */
function doNotBlock(stream: NodeJS.WriteStream): void {
  stream.on('error', () => undefined);
  const handle: unknown = Reflect.get(stream, '_handle');
  if (!stream.isTTY || !(handle instanceof Object) || !('setBlocking' in handle)) return;
  if (typeof handle.setBlocking === 'function') handle.setBlocking(false);
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

/**
 * The members as JSON, where all of them are texts and numbers that JSON writes as they are, or objects of such: nearly every line
 * is such a one.
 */
function simpleJsonOf(members: Readonly<Record<string, unknown>>, isInner = false): string | undefined {
  let text = '';
  for (const name in members) {
    const value = members[name];
    if (value === undefined) continue;
    if (NEEDS_ESCAPE.test(name)) return undefined;
    let written: unknown;
    if (typeof value === 'string') written = NEEDS_ESCAPE.test(value) ? undefined : `"${value}"`;
    else if (typeof value === 'number') written = Number.isFinite(value) ? value : undefined;
    else if (!isInner && isPlain(value)) written = simpleJsonOf(value, true);
    if (written === undefined) return undefined;
    text += `,"${name}":${written}`;
  }
  return `{${text.slice(1)}}`;
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

function textOf(
  { level, time, message }: Readonly<Record<'level' | 'time' | 'message', string>>,
  fields: Readonly<Record<string, unknown>>,
  colour: boolean,
): string {
  const name = level.toUpperCase();
  const shown = colour ? `\u001b[${COLOURS[level]}m${name}\u001b[39m` : name;
  let text = `${time} ${shown} ${escapeUnprintable(message)}`;
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
