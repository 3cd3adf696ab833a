/** Requests that each may read in its turn at least, while others wait for theirs. */
const SHARE = 4;

/** A connection, as the gate sees it. */
export interface Reader {
  /** Requests that it has read since it went on. */
  taken: number;
  /** Readers of one address share a turn. */
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
  /** Readers that are stopped, and since when, by address. The address whose turn is next comes first. */
  readonly #stopped = new Map<string, Map<Reader, number>>();
  #count = 0;
  #isScheduled = false;
  #isHeld = false;
  /** Whether any reader was stopped when this turn began, or has been since. */
  #isBusy = false;
  /** Requests that each reader may read in this turn, if any was stopped. */
  #share = SHARE;
  /** The longest wait, in milliseconds, of a reader that went on in this turn. */
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
    // Most turns read few requests, and need no callback.
    if (this.#count === Math.ceil(this.#most / 4)) this.#schedule();
    if (this.#count === this.#most) this.#shut();
    // Its next request stays with the system. A client that sends one request after another is not cut, only one that sends them at once.
    else if (this.#isBusy && reader.taken >= this.#share) this.#stop(reader);
    return true;
  }

  /** Has a reader that was not added go on in its turn: at once, where nobody waits. */
  queue(reader: Reader): void {
    if (!this.#isBusy && this.#count < this.#most) this.#open(reader);
    else this.#stop(reader);
  }

  /** Stops all readers, new ones too, or has them go on in turns. */
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

  /** One callback a turn: a second one would start the count anew. */
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
    // Fewer are opened than could read, because readers that are open may have requests, too.
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
