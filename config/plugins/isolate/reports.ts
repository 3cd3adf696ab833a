import type { Duplex } from 'node:stream';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { isRecord } from '../../../plugins-sdk/schema/path.ts';
import { FrameSplitter } from './frames.ts';
import { thisProcess } from './process-stats.ts';
import type { Report } from './protocol.ts';

/** Bytes that are read without a look at what they cost. */
const SMALL = 4096;
/** Bytes that a process has written while others had no turn. */
const MUCH = 32 * 1024;
/** How many times as long as it took to read reports nothing more is read: a process gets a quarter of the service's time. */
const RESTS = 3;
/** Milliseconds of rest that may be owed before it is taken. */
const MOST_OWED_MS = 10;

/** Reads what a process reports. It may report as much and as fast as it can: what that costs the service is bounded. */
export class ReportReader {
  readonly #socket: Duplex;
  readonly #splitter: FrameSplitter;
  readonly #take: (report: Report) => void;
  readonly #broken: (reason: string) => void;
  /** Whether it has sent what its own code never sends: what comes later can be no better. */
  #isBroken = false;
  #isPaused = false;
  /** When all rest will have been taken. */
  #restedAt = 0;

  /**
   * @param take may throw what is wrong with a report.
   * @param broken is told once what was wrong; nothing is taken any more.
   */
  constructor(socket: Duplex, token: Buffer, take: (report: Report) => void, broken: (reason: string) => void) {
    this.#socket = socket;
    this.#splitter = new FrameSplitter(token);
    this.#take = take;
    this.#broken = broken;
    socket.on('data', (chunk: Buffer) => {
      if (!this.#isBroken) void this.#read(chunk);
    });
  }

  /** Whether it is the service that does not read. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  async #read(chunk: Buffer): Promise<void> {
    try {
      let reports = 0;
      for (const json of this.#splitter.split(chunk)) {
        reports += 1;
        if (json.length < SMALL) this.#take(reportOf(parsed(json)));
        else this.#charged(() => this.#take(reportOf(parsed(json))));
      }
      // Whether others are to have a turn in any case.
      const yields = reports > 0 ? chunk.length >= MUCH : chunk.length < SMALL;
      // Only what has paused the process may wait: the next chunk comes at once.
      if (yields || this.#owed >= MOST_OWED_MS) await this.#rest();
    } catch (error) {
      this.#isBroken = true;
      this.#broken(error instanceof SyntaxError ? 'it sent a frame that is no JSON' : String(Object(error).message));
    }
    if (this.#isPaused) this.#socket.resume();
    this.#isPaused = false;
  }

  /** Milliseconds of rest. */
  get #owed(): number {
    return this.#restedAt - performance.now();
  }

  async #rest(): Promise<void> {
    const owed = this.#owed;
    this.#pause();
    // Of a frame that comes byte by byte many are read at once.
    if (owed >= MOST_OWED_MS || this.#splitter.isWithin) await setTimeout(Math.max(owed, 1));
    else await setImmediate();
  }

  #pause(): void {
    this.#isPaused = true;
    this.#socket.pause();
  }

  #charged<T>(work: () => T): T {
    const before = thisProcess.cpu();
    try {
      return work();
    } finally {
      const used = thisProcess.cpu() - before;
      this.#restedAt = Math.max(this.#restedAt, performance.now()) + RESTS * used;
    }
  }
}

function parsed(json: Buffer): unknown {
  return JSON.parse(json.toString('utf8'));
}

const OF_CALLS = ['done', 'threw', 'skipped', 'watch'];

/** What the process's own code may send, as far as everybody looks at it: its plugin can have sent anything else. */
function reportOf(value: unknown): Report {
  const { k, i, text = '' }: { k?: unknown; i?: unknown; text?: unknown } = isRecord(value) ? value : {};
  const isOfCall = OF_CALLS.some((kind) => kind === k);
  if (typeof k !== 'string' || isOfCall !== Number.isSafeInteger(i) || typeof text !== 'string')
    throw new Error('it sent a frame that makes no sense');
  return value as Report;
}
