import type { Readable } from 'node:stream';

const LONGEST_LINE = 1000;
/** Lines of a plugin that are logged within a second. */
const MOST_LINES = 100;
const SECOND = 1000;

/** What a plugin's process writes, line by line and bounded: the log is the service's. */
export class Output {
  readonly #write: (line: string) => void;
  #since = Number.NEGATIVE_INFINITY;
  #lines = 0;
  #dropped = 0;

  constructor(write: (line: string) => void) {
    this.#write = write;
  }

  read(stream: Readable): void {
    let rest = '';
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      // Of a line that never ends, what is too long is dropped as it comes.
      rest = (lines.pop() ?? '').slice(0, LONGEST_LINE + 1);
      for (const line of lines) this.#line(line);
    });
    stream.on('error', () => undefined);
    stream.on('end', () => {
      if (rest !== '') this.#line(rest);
      this.#tellDropped();
    });
  }

  #line(line: string): void {
    const now = performance.now();
    if (now - this.#since > SECOND) {
      this.#tellDropped();
      this.#since = now;
      this.#lines = 0;
    }
    this.#lines += 1;
    if (this.#lines > MOST_LINES) this.#dropped += 1;
    else this.#write(line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line);
  }

  #tellDropped(): void {
    if (this.#dropped > 0) this.#write(`${this.#dropped} more lines were dropped`);
    this.#dropped = 0;
  }
}
