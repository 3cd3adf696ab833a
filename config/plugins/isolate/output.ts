import type { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { clipped } from '../../../lib/text.ts';

const SECOND_MS = 1000;
/** Most lines that are logged within a second. */
const MOST_LINES = 100;
/** Most characters of a line that is logged. */
export const LONGEST_LINE = 1000;
/** Characters read per millisecond on average. More output waits in the plugin's process. */
const MOST_READ = 1024;

/** Logs a plugin's output line by line, with a bound for each second, until all of it was read. */
export async function logOutput(streams: readonly Readable[], write: (line: string) => void): Promise<void> {
  let lines = 0;
  const next = () => {
    if (lines > MOST_LINES) write(`${lines - MOST_LINES} more lines were dropped`);
    lines = 0;
  };
  const second = setInterval(next, SECOND_MS).unref();
  const take = (line: string) => {
    lines += 1;
    if (lines <= MOST_LINES) write(clipped(line, LONGEST_LINE));
  };
  await Promise.allSettled(streams.map((stream) => read(stream, take)));
  clearInterval(second);
  next();
}

async function read(stream: Readable, take: (line: string) => void): Promise<void> {
  let rest = '';
  for await (const text of stream.setEncoding('utf8')) {
    const whole = (rest + text).split('\n');
    // The excess of a line that never ends is dropped as it arrives.
    rest = (whole.pop() ?? '').slice(0, LONGEST_LINE + 1);
    for (const line of whole) take(line);
    await pause(text.length / MOST_READ);
  }
  if (rest !== '') take(rest);
}
