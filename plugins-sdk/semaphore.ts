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

/**
 * A counting semaphore: at most `limit` holders at a time, the others wait in the order in which they came.
 *
 * A freed slot goes straight to the first waiter and is never up for grabs in between, so nobody can overtake.
 * @throws {RangeError} when `limit` is no positive integer
 */
export class Semaphore {
  readonly #limit: number;
  readonly #waiters = new Set<(release: Release) => void>();
  #inUse = 0;

  constructor(limit: number) {
    if (!Number.isSafeInteger(limit) || limit < 1) throw new RangeError('limit must be a positive integer');
    this.#limit = limit;
  }

  /** How many slots are held. */
  get inUse(): number {
    return this.#inUse;
  }

  /** How many callers of {@link acquire} are in the queue. */
  get waiting(): number {
    return this.#waiters.size;
  }

  /** Takes a slot when one is free and nobody waits, else gives `undefined`. */
  tryAcquire(): Release | undefined {
    if (this.#inUse >= this.#limit) return undefined;
    this.#inUse += 1;
    return this.#slot();
  }

  /**
   * Waits for a slot. A caller that gave up has left the queue by the time its promise is rejected.
   * @param timeoutMs - longest wait in milliseconds; it does not matter when a slot is free
   * @param signal - ends the wait when it aborts
   * @throws {SlotTimeout} after `timeoutMs`
   * @throws the signal's reason (an `AbortError` unless the aborting side chose another) when it aborts or had aborted
   */
  acquire(timeoutMs: number, signal?: AbortSignal): Promise<Release> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const slot = this.tryAcquire();
      if (slot) return resolve(slot);

      const leave = () => {
        this.#waiters.delete(granted);
        clearTimeout(timer);
        signal?.removeEventListener('abort', aborted);
      };
      const granted = (release: Release) => {
        leave();
        resolve(release);
      };
      const aborted = () => {
        leave();
        reject(signal?.reason);
      };
      const timer = setTimeout(
        () => {
          leave();
          reject(new SlotTimeout(timeoutMs));
        },
        Math.min(timeoutMs, LONGEST_TIMER),
      );
      signal?.addEventListener('abort', aborted);
      this.#waiters.add(granted);
    });
  }

  #slot(): Release {
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#passOn();
    };
  }

  #passOn(): void {
    const [next] = this.#waiters;
    if (next) next(this.#slot());
    else this.#inUse -= 1;
  }
}
