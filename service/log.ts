import { isatty } from 'node:tty';
import type { Log } from '../plugins-sdk/log.ts';
import type { Environment } from '../plugins-sdk/signing/variables.ts';
import { type LineForm, lineWriter } from './log-line.ts';
import { LogSink } from './log-sink.ts';

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
const FORMATS: readonly LogFormat[] = ['text', 'json'];

type Fields = Readonly<Record<string, unknown>>;
type LogLevel = (typeof LEVELS)[number];
type LogFormat = LineForm['format'];

/** The level and form of a log. */
export interface LogSettings extends LineForm {
  readonly level: LogLevel;
}

/** The log of a service, which may know its format and may change its level. */
export interface ServiceLog extends Log {
  readonly format?: LogFormat;
  /** Sets the lowest level that is written. */
  setLevel?(level: LogLevel): void;
}

/** The log of a process. */
export interface ProcessLog extends Required<ServiceLog> {
  /** Writes a finished line of another process, with its line feed. */
  pass(line: string): void;
  /** Writes all waiting lines now, within a second. Happens by itself when the process exits. */
  flush(): void;
}

/** The destination of a log's lines, each with its line feed. */
export interface LogDestination {
  write(line: string): void;
  flush?(): void;
}

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
  process.on('exit', () => sink.flush());
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
