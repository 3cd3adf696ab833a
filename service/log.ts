import { isatty } from 'node:tty';
import { configure } from 'safe-stable-stringify';
import type { Log } from '../plugins-sdk/log.ts';
import type { Environment } from '../plugins-sdk/signing/variables.ts';
import { LogSink } from './log-sink.ts';
import { escapeUnprintable } from './text.ts';

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
const FORMATS = ['text', 'json'] as const;

type Fields = Readonly<Record<string, unknown>>;
type LogLevel = (typeof LEVELS)[number];
type LogFormat = (typeof FORMATS)[number];

/** The level of a log, and the form of its lines. */
export interface LogSettings {
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** Colours the level; text only. */
  readonly colour: boolean;
  /** The number of the worker, a field of all its lines. */
  readonly worker?: number;
}

/** The log of a service, which may know its format and may change its level. */
export interface ServiceLog extends Log {
  readonly format?: LogFormat;
  /** Sets the lowest level that is written. */
  setLevel?(level: LogLevel): void;
  /** Writes waiting lines now, as many as can be written without waiting. */
  flush?(): void;
}

/** The log of a process. */
export interface ProcessLog extends Required<ServiceLog> {
  /** Writes a finished line of another process, with its line feed. */
  pass(line: string): void;
}

/** The destination of a log's lines, each with its line feed. */
type LogDestination = Pick<LogSink, 'write'> & Partial<Pick<LogSink, 'flush'>>;

/**
 * Reads the settings from the variables `LOG_LEVEL` (default `info`), `LOG_FORMAT` (default `text`) and `NO_COLOR`. An
 * empty variable counts as unset.
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
  const value = env[variable] || otherwise;
  const chosen = choices.find((candidate) => candidate === value);
  if (chosen === undefined) throw new Error(`${variable} must be one of ${choices.join(', ')}, not "${value}"`);
  return chosen;
}

/** Makes a log that passes all that is said to one function. */
export function logTo(tell: (level: keyof Log, message: string, fields: Fields) => void): Log {
  const at =
    (level: keyof Log) =>
    (message: string, fields: Fields = {}) =>
      tell(level, message, fields);
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/**
 * Makes a log on stdout, or at the destination given. Every event is one line, written within 100 ms and at exit.
 * In text it is `<ISO time> <LEVEL> <message> key=value …`, in JSON an object with `level`, `time` (ISO), `msg` and the fields.
 */
export function createLog(settings: LogSettings, destination?: LogDestination): ProcessLog {
  const target =
    destination ?? standardOutput((count, reason) => log.warn(`log lines dropped: ${whyDropped(reason)}`, { count }));
  const lineOf = lineWriter(settings);
  let lowest = LEVELS.indexOf(settings.level);
  const log: ProcessLog = {
    ...logTo((level, message, fields) => {
      if (LEVELS.indexOf(level) >= lowest) target.write(lineOf(level, message, fields));
    }),
    format: settings.format,
    setLevel: (level) => {
      lowest = LEVELS.indexOf(level);
    },
    pass: (line) => target.write(line),
    flush: () => target.flush?.(),
  };
  return log;
}

const DROPPED: Readonly<Record<string, string>> = { EAGAIN: 'the reader is too slow', ENOSPC: 'the disk is full' };

function whyDropped(reason: string | undefined): string {
  if (reason === undefined) return 'a line is too long';
  return DROPPED[reason] ?? `they cannot be written (${reason})`;
}

function standardOutput(dropped: (count: number, reason: string | undefined) => void): LogSink {
  for (const stream of [process.stdout, process.stderr]) doNotBlock(stream);
  const sink = new LogSink(1, dropped);
  process.on('exit', () => sink.end());
  return sink;
}

/**
 * Sets a stream to non-blocking, so that a stalled reader cannot hold up the process or its exit. For a pipe node does
 * that as soon as the stream is touched. A terminal, which Ctrl-S stops, node would leave in blocking mode.
 */
function doNotBlock(stream: NodeJS.WriteStream): void {
  stream.on('error', () => undefined);
  if (stream.isTTY) Object(Reflect.get(stream, '_handle')).setBlocking?.(false);
}

/** The most names of fields that are kept as they are written. */
const MOST_NAMES = 100;
/** Field names that a plugin cannot use: those of the line itself, and those with a meaning in JavaScript. */
const RESERVED: ReadonlySet<string> = new Set(['level', 'time', 'msg', 'toJSON', '__proto__']);

/** Returns a function that makes log lines, each with its line feed. It accepts any message, since plugins pass anything. */
function lineWriter({ format, colour, worker }: LogSettings) {
  const isJson = format === 'json';
  const [lineOf, textOf] = isJson ? [jsonLine, json] : [textLine, bare];
  const nameOf = (name: string) => (isJson ? `,${quoted(name)}:` : ` ${bare(name)}=`);
  const own = worker === undefined ? '' : `${nameOf('worker')}${worker}`;
  // A reserved name gets a `_`, so that a plugin's field cannot pass for the line's own.
  const isReserved = (name: string) => RESERVED.has(name) || (own !== '' && name === 'worker');
  // Most lines have the same few names.
  const names = new Map<string, string>();
  const memberOf = (name: string, value: unknown): string => {
    const text = textOf(value);
    if (text === undefined) return '';
    let start = names.get(name);
    if (start === undefined) {
      start = nameOf(isReserved(name) ? `${name}_` : name);
      if (names.size < MOST_NAMES) names.set(name, start);
    }
    return start + text;
  };
  return (level: string, message: unknown, fields: Readonly<Record<string, unknown>>): string => {
    let members = own;
    for (const name of Object.keys(fields)) members += memberOf(name, fields[name]);
    return `${lineOf(isoTime(), level, message, members, colour)}\n`;
  };
}

let last = { second: Number.NaN, text: '' };

/** Returns the ISO time. Under load many lines share a second, and formatting it is dear. */
function isoTime(): string {
  const now = Date.now();
  const second = Math.floor(now / 1000);
  if (second !== last.second) last = { second, text: new Date(now).toISOString().slice(0, -4) };
  return `${last.text}${String(now - second * 1000).padStart(3, '0')}Z`;
}

function jsonLine(time: string, level: string, message: unknown, members: string): string {
  return `{"level":"${level}","time":"${time}"${members},"msg":${json(message) ?? 'null'}}`;
}

const COLOURS: Readonly<Record<string, number>> = { debug: 90, info: 32, warn: 33, error: 31 };

function textLine(time: string, level: string, message: unknown, members: string, colour: boolean): string {
  const name = level.toUpperCase();
  const shown = colour ? `\u001b[${COLOURS[level]}m${name}\u001b[39m` : name;
  const text = typeof message === 'string' ? escapeUnprintable(message) : (json(message) ?? '');
  return `${time} ${shown} ${text}${members}`;
}

/** Shows at most 100 members of an object in a field, five levels deep, and counts the rest. */
const stringify = configure({ deterministic: false, maximumDepth: 5, maximumBreadth: 100 });

const NEEDS_ESCAPES = /["\\]|[^\x20-\x7e]/;

/** Returns printable JSON for a text. Most need no escapes, which `JSON.stringify` takes longer to find out. */
const quoted = (text: string) => (NEEDS_ESCAPES.test(text) ? escapeUnprintable(JSON.stringify(text)) : `"${text}"`);

/** Returns printable JSON for any value, circles and bigints included, and never throws at the caller. Errors lose their stack. */
function json(value: unknown): string | undefined {
  if (typeof value === 'string') return quoted(value);
  if (Number.isFinite(value)) return String(value);
  try {
    const text = value === undefined ? undefined : stringify(value instanceof Error ? String(value) : value);
    return text && escapeUnprintable(text);
  } catch {
    return '"[no JSON]"';
  }
}

const NEEDS_QUOTES = /^$|[\s"=\\\p{C}\p{Z}]/u;

/** Returns a one-word text as it is, any other value as JSON, and undefined where JSON has no form for it. */
function bare(value: unknown): string | undefined {
  if (typeof value === 'string' && !NEEDS_QUOTES.test(value)) return value;
  return json(value);
}
