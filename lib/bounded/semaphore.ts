import { LONGEST_TIMER } from '../time.ts';
import type { AbortSource } from './abort-source.ts';

/** Gives the slot back. Only the first call counts. */
export type Release = () => void;

/** Says that {@link Semaphore.acquire} waited in vain. */
export const noSlotText = (timeoutMs: number) => `No slot came free within ${timeoutMs} ms`;

/** How many slots there are, and how many of them each name may hold. */
export interface SlotLimits {
  /** Slots in all. */
  readonly limit: number;
  /** Most slots that a name may hold at once. A name without a cap may hold all. */
  readonly caps?: ReadonlyMap<string, number> | undefined;
}

/**
 * A counting semaphore: at most `limit` holders at a time. A freed slot goes straight to the first waiter whose name may hold
 * one more, so a newcomer cannot overtake.
 */
export class Semaphore {
  #limits: SlotLimits;
  #inUse = 0;
  /** Number of slots held, by name. */
  readonly #held = new Map<string, number>();
  readonly #waiting = new Set<{ readonly name: string; grant(release: Release): void }>();

  constructor(limit: number) {
    this.#limits = { limit };
  }

  /** How many slots are held. */
  get inUse(): number {
    return this.#inUse;
  }

  /** How many callers of {@link acquire} are in the queue. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Puts new limits in force. Slots already held count against them, so none may be free for a while.
   * @returns a function that restores the previous limits, unless newer ones are in force.
   */
  change(limits: SlotLimits): () => void {
    const before = this.#limits;
    this.#limits = limits;
    this.#serve();
    return () => {
      if (this.#limits === limits) this.change(before);
    };
  }

  /** Takes a slot if one is free; otherwise returns `undefined`. */
  tryAcquire(name = ''): Release | undefined {
    return this.#allows(name) ? this.#take(name) : undefined;
  }

  /**
   * Waits for a slot.
   * @param timeoutMs - longest wait in milliseconds; ignored when a slot is free
   * @param signal - ends the wait when it aborts
   * @returns `undefined` if no slot came free in time, or if the signal aborts or had aborted. The caller has left the queue then.
   */
  acquire(timeoutMs: number, signal?: AbortSource, name = ''): Promise<Release | undefined> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve(undefined);
      const slot = this.tryAcquire(name);
      if (slot) return resolve(slot);
      const grant = (release?: Release) => {
        this.#waiting.delete(waiter);
        clearTimeout(timer);
        signal?.removeEventListener('abort', giveUp);
        resolve(release);
      };
      const giveUp = () => grant(undefined);
      const timer = setTimeout(giveUp, Math.min(timeoutMs, LONGEST_TIMER));
      const waiter = { name, grant };
      signal?.addEventListener('abort', giveUp);
      this.#waiting.add(waiter);
    });
  }

  #allows(name: string): boolean {
    const { limit, caps } = this.#limits;
    return this.#inUse < limit && (this.#held.get(name) ?? 0) < (caps?.get(name) ?? limit);
  }

  #take(name: string): Release {
    this.#count(name, 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#count(name, -1);
      this.#serve();
    };
  }

  #count(name: string, by: 1 | -1): void {
    this.#inUse += by;
    this.#held.set(name, (this.#held.get(name) ?? 0) + by);
  }

  #serve(): void {
    for (const { name, grant } of this.#waiting) {
      if (this.#inUse >= this.#limits.limit) return;
      if (this.#allows(name)) grant(this.#take(name));
    }
  }
}
