import type { Readable } from 'node:stream';

/** Characters of a line; what is longer is passed on in parts. */
const LONGEST_LINE = 4 * 1024 * 1024;

/** Passes on what a process writes, in whole lines; its last one gets a line feed if it has none. @returns what ends it. */
export function passLines(stream: Readable | null, write: (line: string) => void): () => void {
  let begun = '';
  const end = () => {
    if (begun !== '') write(`${begun}\n`);
    begun = '';
  };
  const add = (text: string) => {
    const last = text.lastIndexOf('\n');
    if (last !== -1) write(begun + text.slice(0, last + 1));
    begun = last === -1 ? begun + text : text.slice(last + 1);
    if (begun.length > LONGEST_LINE) end();
  };
  stream?.setEncoding('utf8').on('data', add).on('end', end);
  stream?.on('error', () => undefined);
  return end;
}
