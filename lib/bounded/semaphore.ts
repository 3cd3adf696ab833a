import type { AbortSource } from './abort-source.ts';
import { type Release, SlotPool, type SlotTenant, SlotTimeout } from './slot-pool.ts';

export { type Release, SlotTimeout };

/**
 * A counting semaphore: at most `limit` holders at a time, the others wait in the order in which they came.
 * @throws {RangeError} when `limit` is no positive integer
 */
export class Semaphore {
  readonly #slots: SlotTenant;

  constructor(limit: number) {
    this.#slots = new SlotPool({ limit, tenants: new Map([['', limit]]) }).of('');
  }

  /** How many slots are held. */
  get inUse(): number {
    return this.#slots.inUse;
  }

  /** How many callers of {@link acquire} are in the queue. */
  get waiting(): number {
    return this.#slots.waiting;
  }

  /** See {@link SlotTenant.tryAcquire}. */
  tryAcquire(): Release | undefined {
    return this.#slots.tryAcquire();
  }

  /** See {@link SlotTenant.acquire}. */
  acquire(timeoutMs: number, signal?: AbortSource): Promise<Release> {
    return this.#slots.acquire(timeoutMs, signal);
  }
}
