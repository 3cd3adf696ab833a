import { LONGEST_TIMER } from '../time/timer.ts';
import type { AbortSource } from './abort-source.ts';

/** Gives the slot back. Only the first call counts. */
export type Release = () => void;

/** No slot came free within the time that the caller was ready to wait. */
export class SlotTimeout extends Error {
  override readonly name = 'SlotTimeout';

  constructor(timeoutMs: number) {
    super(`No slot came free within ${timeoutMs} ms`);
  }
}

interface Waiter {
  /** Lower for those who came earlier, whichever tenant they are of. */
  readonly ticket: number;
  readonly granted: (release: Release) => void;
}

export interface SlotLimits {
  /** Slots in all. */
  readonly limit: number;
  /** Names of the tenants, with the limits that they have of their own. */
  readonly tenants: ReadonlyMap<string, number | undefined>;
}

/** @throws {RangeError} when a limit is no positive integer */
function checked(limits: SlotLimits): SlotLimits {
  for (const each of [limits.limit, ...limits.tenants.values()]) {
    if (each !== undefined && !(Number.isSafeInteger(each) && each >= 1))
      throw new RangeError('limit must be a positive integer');
  }
  return limits;
}

/**
 * Slots that several tenants share. A tenant with a limit of its own takes as many as that, any other one as many as there are.
 * A freed slot goes straight to the first of those who wait and whose tenant may have it. It is never up for grabs in
 * between, so nobody can overtake.
 */
export class SlotPool {
  readonly #tenants = new Map<string, SlotTenant>();
  /** The last ones are in force. */
  readonly #limits: Set<SlotLimits>;
  #limit = 0;
  #inUse = 0;
  #tickets = 0;

  constructor(limits: SlotLimits) {
    this.#limits = new Set([checked(limits)]);
    this.#apply(limits);
  }

  /** How many slots are held. */
  get inUse(): number {
    return this.#inUse;
  }

  /** How many callers of {@link SlotTenant.acquire} are in the queue. */
  get waiting(): number {
    return [...this.#tenants.values()].reduce((sum, tenant) => sum + tenant.waiting, 0);
  }

  /** @throws when there has never been such a tenant. */
  of(name: string): SlotTenant {
    const tenant = this.#tenants.get(name);
    if (tenant === undefined) throw new Error(`no slots are shared with "${name}"`);
    return tenant;
  }

  /**
   * Has other limits in force from now on. Slots that are held count, so that there may be none for a while.
   * @returns what takes the limits back: then those before them are in force, unless there are newer ones.
   * @throws {RangeError} when a limit is no positive integer
   */
  change(asked: SlotLimits): () => void {
    const limits = { ...checked(asked) };
    this.#limits.add(limits);
    this.#apply(limits);
    return () => {
      this.#limits.delete(limits);
      const last = [...this.#limits].at(-1);
      if (last !== undefined) this.#apply(last);
    };
  }

  /** @internal */
  nextTicket(): number {
    this.#tickets += 1;
    return this.#tickets;
  }

  /** @internal Whether a tenant may take one more slot now. */
  allows({ inUse, own = this.#limit }: SlotTenant): boolean {
    return this.#inUse < this.#limit && inUse < own;
  }

  /** @internal */
  take(tenant: SlotTenant): Release {
    this.#count(tenant, 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#count(tenant, -1);
      this.#serve();
    };
  }

  #apply({ limit, tenants }: SlotLimits): void {
    this.#limit = limit;
    for (const name of tenants.keys()) if (!this.#tenants.has(name)) this.#tenants.set(name, new SlotTenant(this));
    // Those that are gone may still have calls to make for requests that began before.
    for (const [name, tenant] of this.#tenants) tenant.own = tenants.get(name);
    this.#serve();
  }

  #count(tenant: SlotTenant, by: 1 | -1): void {
    this.#inUse += by;
    tenant.inUse += by;
  }

  #serve(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) next();
  }

  #next(): (() => void) | undefined {
    let first: { waiter: Waiter; tenant: SlotTenant } | undefined;
    for (const tenant of this.#tenants.values()) {
      const waiter = tenant.first;
      if (waiter === undefined || (first !== undefined && first.waiter.ticket < waiter.ticket)) continue;
      if (this.allows(tenant)) first = { waiter, tenant };
    }
    if (first === undefined) return undefined;
    const { waiter, tenant } = first;
    return () => waiter.granted(this.take(tenant));
  }
}

/** One of those who share slots. */
export class SlotTenant {
  readonly #pool: SlotPool;
  readonly #waiters = new Set<Waiter>();
  /** @internal The limit of its own. */
  own: number | undefined;
  /** How many slots it holds. */
  inUse = 0;

  constructor(pool: SlotPool) {
    this.#pool = pool;
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
  acquire(timeoutMs: number, signal?: AbortSource): Promise<Release> {
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
      const waiter = { ticket: this.#pool.nextTicket(), granted };
      signal?.addEventListener('abort', aborted);
      this.#waiters.add(waiter);
    });
  }
}

function reasonOf(signal: AbortSource | undefined): unknown {
  return signal instanceof AbortSignal ? signal.reason : new DOMException('The wait was aborted', 'AbortError');
}
