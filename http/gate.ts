/** Requests that each may read in its turn at least, while others wait for theirs. */
const SHARE = 4;

/** What the gate lets read, or not. */
export interface Reader {
  /** Requests that it has read since it went on. */
  taken: number;
  /** Who takes turns with others: those of one address share a turn. */
  readonly address: string;
  /** Reads nothing more, at once. */
  stop(): void;
  /** Goes on to read. */
  start(): void;
}

/**
 * Lets a bounded number of requests be read in each turn of the event loop. Node reads all sockets that have something in one
 * turn, up to 64 KiB of each. When the number is reached, all are stopped within the turn, and then go on some at a time.
 */
export class Gate {
  readonly #most: number;
  readonly #now: () => number;
  readonly #reading = new Set<Reader>();
  /** Those that are stopped, and since when; by address, the one whose turn is next in front. */
  readonly #stopped = new Map<string, Map<Reader, number>>();
  #count = 0;
  #isScheduled = false;
  #isHeld = false;
  /** Whether some were stopped when this turn began, or are since. */
  #isBusy = false;
  /** Requests that each may read in this turn, if some were stopped. */
  #share = SHARE;
  /** Milliseconds that those waited which went on in this turn. */
  delay = 0;
  /** How many are stopped. */
  size = 0;

  constructor(most: number, now: () => number) {
    this.#most = most;
    this.#now = now;
  }

  add(reader: Reader): void {
    this.#reading.add(reader);
    if (this.#isBusy) this.#stop(reader);
  }

  /** @returns since when it was stopped, if it was. */
  delete(reader: Reader): number | undefined {
    if (this.#reading.delete(reader)) return undefined;
    const ofAddress = this.#stopped.get(reader.address);
    const since = ofAddress?.get(reader);
    if (ofAddress?.delete(reader)) this.size -= 1;
    if (ofAddress?.size === 0) this.#stopped.delete(reader.address);
    return since;
  }

  /** Whether one more request may be read in this turn. */
  enter(reader: Reader): boolean {
    if (!this.#reading.has(reader)) return false;
    this.#count += 1;
    reader.taken += 1;
    // Most turns read a few requests: no call back for each of them.
    if (this.#count === Math.ceil(this.#most / 4)) this.#schedule();
    if (this.#count === this.#most) this.#shut();
    // What comes next stays with the system. Who sends one request after another is not cut for it, only who sends them at once.
    else if (this.#isBusy && reader.taken >= this.#share) this.#stop(reader);
    return true;
  }

  /** Has one that is not added go on in its turn: at once, where nobody waits. */
  queue(reader: Reader): void {
    if (!this.#isBusy && this.#count < this.#most) this.#open(reader);
    else this.#stop(reader);
  }

  /** Has all wait, whatever comes; or go on, in turns. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    if (isHeld) this.#shut();
    else this.#schedule();
  }

  #shut(): void {
    this.#isBusy = true;
    for (const reader of this.#reading) this.#stop(reader);
  }

  #stop(reader: Reader): void {
    if (this.#reading.delete(reader)) reader.stop();
    const ofAddress = this.#stopped.get(reader.address) ?? new Map<Reader, number>();
    this.#stopped.set(reader.address, ofAddress.set(reader, this.#now()));
    this.size += 1;
    this.#schedule();
  }

  #open(reader: Reader): void {
    this.#reading.add(reader);
    reader.taken = 0;
    reader.start();
  }

  /** Once in a turn: a second call back would count from nothing again. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (!this.#isHeld) this.#turn();
    });
  }

  #turn(): void {
    this.#count = 0;
    this.#isBusy = this.size > 0;
    this.delay = 0;
    const now = this.#now();
    // Fewer than could read: those that are open already may have something, too.
    const most = Math.ceil(this.#most / 4);
    const opened = Math.min(Math.ceil(most / SHARE), this.size);
    this.#share = Math.max(SHARE, Math.floor(most / opened));
    for (let i = opened; i > 0; i--) this.#openNext(now);
    if (this.#isBusy) this.#schedule();
  }

  /** Opens the first of the address whose turn is next. */
  #openNext(now: number): void {
    const [[address, readers] = ['', new Map<Reader, number>()]] = this.#stopped;
    const [reader] = readers.keys();
    if (reader === undefined) return;
    // A Map keeps the order in which its members came: the address goes to the back.
    this.#stopped.delete(address);
    this.#stopped.set(address, readers);
    this.delay = Math.max(this.delay, now - (this.delete(reader) ?? now));
    this.#open(reader);
  }
}
