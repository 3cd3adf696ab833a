import type { Departing } from './kernel.ts';

/** Gives the slot back. Only the first call counts. */
export type Release = () => void;

/** No slot came free within the time that the caller was ready to wait. */
export class SlotTimeout extends Error {
  override readonly name = 'SlotTimeout';

  constructor(timeoutMs: number) {
    super(`No slot came free within ${timeoutMs} ms`);
  }
}

/** A longer delay would make Node's timers fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** This part of the slots, rounded up, is never taken by one party alone while there are others. */
const RESERVED = 1 / 4;

interface Waiter {
  /** Lower for those who came earlier, whichever party they are of. */
  readonly turn: number;
  readonly granted: (release: Release) => void;
}

/**
 * Slots that several parties share, so that none of them can leave the others without one (a bulkhead).
 *
 * A party with a limit of its own takes as many slots as that. Of the others none takes the last quarter of all; and while
 * any of them holds less than its part of that quarter, what is missing is kept for it. A freed slot goes straight to the
 * first of those who wait and whose party may have it, and is never up for grabs in between, so nobody can overtake.
 */
export class SlotPool {
  readonly #limit: number;
  readonly #parties = new Map<string, Party>();
  readonly #reserve: number;
  /** Slots that are kept for parties: what they hold less than their part. */
  #kept: number;
  #inUse = 0;
  #turns = 0;

  /**
   * @param parties - names with the limits that they have of their own
   * @throws {RangeError} when a limit is no positive integer
   */
  constructor(limit: number, parties: ReadonlyMap<string, number | undefined>) {
    for (const each of [limit, ...parties.values()]) {
      if (each !== undefined && !(Number.isSafeInteger(each) && each >= 1))
        throw new RangeError('limit must be a positive integer');
    }
    const others = parties.size - 1;
    this.#limit = limit;
    this.#reserve = others > 0 ? Math.ceil(limit * RESERVED) : 0;
    const part = others > 0 ? Math.max(1, Math.floor(this.#reserve / others)) : 0;
    for (const [name, own] of parties) this.#parties.set(name, new Party(this, part, own));
    this.#kept = [...this.#parties.values()].reduce((sum, { missing }) => sum + missing, 0);
  }

  /** How many slots are held. */
  get inUse(): number {
    return this.#inUse;
  }

  /** How many callers of {@link Party.acquire} are in the queue. */
  get waiting(): number {
    return [...this.#parties.values()].reduce((sum, party) => sum + party.waiting, 0);
  }

  /** @throws when there is no such party. */
  of(name: string): Party {
    const party = this.#parties.get(name);
    if (party === undefined) throw new Error(`no slots are shared with "${name}"`);
    return party;
  }

  /** @internal */
  nextTurn(): number {
    this.#turns += 1;
    return this.#turns;
  }

  /** @internal Whether a party may take one more slot now. */
  allows({ inUse, missing, own }: Party): boolean {
    if (this.#inUse >= this.#limit) return false;
    if (own !== undefined) return inUse < own;
    if (missing > 0) return true;
    const keptForOthers = Math.min(this.#kept, this.#reserve);
    return inUse < this.#limit - this.#reserve && this.#limit - this.#inUse > keptForOthers;
  }

  /** @internal */
  take(party: Party): Release {
    this.#change(party, 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#change(party, -1);
      this.#serve();
    };
  }

  #change(party: Party, by: 1 | -1): void {
    this.#inUse += by;
    this.#kept -= party.missing;
    party.inUse += by;
    this.#kept += party.missing;
  }

  #serve(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) next();
  }

  #next(): (() => void) | undefined {
    let first: { waiter: Waiter; party: Party } | undefined;
    for (const party of this.#parties.values()) {
      const waiter = party.first;
      if (waiter === undefined || (first !== undefined && first.waiter.turn < waiter.turn)) continue;
      if (this.allows(party)) first = { waiter, party };
    }
    if (first === undefined) return undefined;
    const { waiter, party } = first;
    return () => waiter.granted(this.take(party));
  }
}

/** One of those who share slots. */
export class Party {
  readonly #pool: SlotPool;
  readonly #waiters = new Set<Waiter>();
  readonly #part: number;
  /** The limit of its own. */
  readonly own: number | undefined;
  /** How many slots it holds. */
  inUse = 0;

  /** @param part - how many of the last quarter are kept for it */
  constructor(pool: SlotPool, part: number, own: number | undefined) {
    this.#pool = pool;
    this.#part = Math.min(part, own ?? part);
    this.own = own;
  }

  /** @internal How many slots it holds less than its part. */
  get missing(): number {
    return Math.max(0, this.#part - this.inUse);
  }

  /** How many callers of {@link acquire} are in the queue. */
  get waiting(): number {
    return this.#waiters.size;
  }

  /** @internal */
  get first(): Waiter | undefined {
    const [first] = this.#waiters;
    return first;
  }

  /** Takes a slot when one is free, else gives `undefined`. */
  tryAcquire(): Release | undefined {
    return this.#pool.allows(this) ? this.#pool.take(this) : undefined;
  }

  /**
   * Waits for a slot. A caller that gave up has left the queue by the time its promise is rejected.
   * @param timeoutMs - longest wait in milliseconds; it does not matter when a slot is free
   * @param signal - ends the wait when it aborts
   * @throws {SlotTimeout} after `timeoutMs`
   * @throws the signal's reason (an `AbortError` unless the aborting side chose another) when it aborts or had aborted
   */
  acquire(timeoutMs: number, signal?: AbortSignal | Departing): Promise<Release> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(reasonOf(signal));
      const slot = this.tryAcquire();
      if (slot) return resolve(slot);

      const leave = () => {
        this.#waiters.delete(waiter);
        clearTimeout(timer);
        signal?.removeEventListener('abort', aborted);
      };
      const granted = (release: Release) => {
        leave();
        resolve(release);
      };
      const aborted = {
        handleEvent: () => {
          leave();
          reject(reasonOf(signal));
        },
      };
      const timer = setTimeout(
        () => {
          leave();
          reject(new SlotTimeout(timeoutMs));
        },
        Math.min(timeoutMs, LONGEST_TIMER),
      );
      const waiter = { turn: this.#pool.nextTurn(), granted };
      signal?.addEventListener('abort', aborted);
      this.#waiters.add(waiter);
    });
  }
}

function reasonOf(signal: AbortSignal | Departing | undefined): unknown {
  return signal instanceof AbortSignal ? signal.reason : new DOMException('The wait was aborted', 'AbortError');
}

/**
 * A counting semaphore: at most `limit` holders at a time, the others wait in the order in which they came.
 * @throws {RangeError} when `limit` is no positive integer
 */
export class Semaphore {
  readonly #all: Party;

  constructor(limit: number) {
    this.#all = new SlotPool(limit, new Map([['', limit]])).of('');
  }

  /** How many slots are held. */
  get inUse(): number {
    return this.#all.inUse;
  }

  /** How many callers of {@link acquire} are in the queue. */
  get waiting(): number {
    return this.#all.waiting;
  }

  /** See {@link Party.tryAcquire}. */
  tryAcquire(): Release | undefined {
    return this.#all.tryAcquire();
  }

  /** See {@link Party.acquire}. */
  acquire(timeoutMs: number, signal?: AbortSignal | Departing): Promise<Release> {
    return this.#all.acquire(timeoutMs, signal);
  }
}
