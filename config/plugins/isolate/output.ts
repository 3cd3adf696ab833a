import type { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { clipped } from '../../../lib/text/clipped.ts';

const SECOND_MS = 1000;
/** Lines that are logged within a second, and characters of each. */
const MOST_LINES = 100;
export const LONGEST_LINE = 1000;
/** Characters that are read within a millisecond, and in one piece at most: more wait in the process. */
const MOST_READ = 1024;

/** Logs what a plugin writes, line by line and bounded by the second, until all of it was read. */
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
    // Of a line that never ends, what is too long is dropped as it comes.
    rest = (whole.pop() ?? '').slice(0, LONGEST_LINE + 1);
    for (const line of whole) take(line);
    await pause(text.length / MOST_READ);
  }
  if (rest !== '') take(rest);
}
