import type { Readable } from 'node:stream';
import { clipped } from '../../../lib/text/clipped.ts';

const SECOND_MS = 1000;
/** Lines that are logged within a second, and characters of each. */
const MOST_LINES = 100;
export const LONGEST_LINE = 1000;
/** Characters that are read within a second: more wait in the process. */
const MOST_READ = 1024 * 1024;
/** What a piece counts at least: it may be a single character. */
const LEAST_PIECE = 1024;

/** Logs what a plugin writes, line by line and bounded by the second. @returns what reads the rest when its process has ended. */
export function readOutput(streams: readonly Readable[], write: (line: string) => void): () => void {
  let [lines, read] = [0, 0];
  let second: NodeJS.Timeout | undefined;
  const take = (line: string) => {
    lines += 1;
    if (lines <= MOST_LINES) write(clipped(line, LONGEST_LINE));
  };
  const next = () => {
    clearTimeout(second);
    second = undefined;
    if (lines > MOST_LINES) write(`${lines - MOST_LINES} more lines were dropped`);
    [lines, read] = [0, 0];
    for (const stream of streams) stream.resume();
  };
  for (const stream of streams) {
    let rest = '';
    const split = (text: string) => {
      second ??= setTimeout(next, SECOND_MS).unref();
      read += Math.max(text.length, LEAST_PIECE);
      if (read > MOST_READ) stream.pause();
      const whole = (rest + text).split('\n');
      // Of a line that never ends, what is too long is dropped as it comes.
      rest = (whole.pop() ?? '').slice(0, LONGEST_LINE + 1);
      for (const line of whole) take(line);
    };
    const end = () => {
      if (rest !== '') take(rest);
      next();
    };
    stream.setEncoding('utf8').on('data', split).on('end', end);
  }
  return next;
}
