import type { Readable } from 'node:stream';
import { clipped } from '../../../lib/text/clipped.ts';

const LONGEST_LINE = 1000;
/** Lines of a plugin that are logged within a second. */
const MOST_LINES = 100;
const SECOND_MS = 1000;
/** Characters that are read within a second: more wait in the process. */
const MOST_READ = 1024 * 1024;
/** Milliseconds from one piece to the next, whatever its length: it may be a byte. */
const REST_MS = 10;

/** What a plugin's process writes, line by line and bounded: the log is the service's. */
export class Output {
  readonly #write: (line: string) => void;
  #since = Number.NEGATIVE_INFINITY;
  #lines = 0;
  #dropped = 0;
  #characters = 0;
  #isFinished = false;
  readonly #paused = new Map<Readable, NodeJS.Timeout>();

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
      this.#characters += text.length;
      if (!this.#isFinished) this.#pause(stream, this.#characters > MOST_READ ? SECOND_MS : REST_MS);
    });
    stream.on('error', () => undefined);
    stream.on('end', () => {
      if (rest !== '') this.#line(rest);
      this.#tellDropped();
    });
  }

  /** Reads what waits yet: the process has ended. */
  finish(): void {
    this.#isFinished = true;
    for (const stream of this.#paused.keys()) this.#resume(stream);
  }

  #pause(stream: Readable, milliseconds: number): void {
    stream.pause();
    this.#paused.set(
      stream,
      setTimeout(() => {
        if (milliseconds === SECOND_MS) this.#characters = 0;
        this.#resume(stream);
      }, milliseconds),
    );
  }

  #resume(stream: Readable): void {
    clearTimeout(this.#paused.get(stream));
    this.#paused.delete(stream);
    stream.resume();
  }

  #line(line: string): void {
    const now = performance.now();
    if (now - this.#since > SECOND_MS) {
      this.#tellDropped();
      this.#since = now;
      this.#lines = 0;
    }
    this.#lines += 1;
    if (this.#lines > MOST_LINES) this.#dropped += 1;
    else this.#write(clipped(line, LONGEST_LINE));
  }

  #tellDropped(): void {
    if (this.#dropped > 0) this.#write(`${this.#dropped} more lines were dropped`);
    this.#dropped = 0;
  }
}
