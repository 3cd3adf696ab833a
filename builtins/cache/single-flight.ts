import type { AbortSource } from '../../plugins-sdk/index.ts';
import { LONGEST_TIMER } from '../../plugins-sdk/timer.ts';

/** How a leader's work has ended: a result for all, a failure that followers may share, or nothing, because its client left. */
export type Settlement<T, F> = { readonly result: T } | { readonly failure: F } | undefined;

/** The caller does the work itself. */
export interface Leader<T, F> {
  /** Milliseconds that it has waited for earlier leaders, in vain. */
  readonly waited: number;
  /** To be called when the upstream has answered: from then on followers wait for the rest of the work, past their deadlines. */
  answered(): void;
  /** To be called once, when the work has ended in any way. */
  settle(settlement: Settlement<T, F>): void;
}

/** No leader had a result in time, and no time is left for a call of the caller's own. */
export interface TimedOut {
  readonly timedOut: true;
  /** Milliseconds. */
  readonly waited: number;
}

/** What a caller gets: the shared result or failure, a timeout, or the lead. */
export type Joined<T, F> = { readonly result: T } | { readonly failure: F } | TimedOut | Leader<T, F>;

/** Failures of leaders after which a follower does not call itself. */
const MOST_FAILURES = 2;

// The times of a follower, counted from its arrival in timeouts of a call.

/** Until here it waits for others. */
const DEADLINE = 2;
/** From here on it shares a leader's failure instead of calling itself. */
const LONG_WAIT = 1 / 2;
/** Here it calls, too, if no call can be under way; a call that hangs has failed by then. */
const BACKUP = 1.25;
/** From here on too little time is left for a call. */
export const LATEST_CALL = 1.5;

interface Wait {
  readonly since: number;
  /** Milliseconds that a call may take. */
  readonly timeout: number;
  /** Failures of leaders during this wait. */
  failures: number;
  /** Whether its deadline has passed. */
  isLate: boolean;
}

interface Follower<T, F> extends Wait {
  lastFailure: { readonly failure: F } | undefined;
  timer: NodeJS.Timeout | undefined;
  readonly release: (joined: Joined<T, F>) => void;
}

/**
 * Several requests want the same work at the same time: one of them does it, the leader, and the others follow.
 *
 * - All followers share a success.
 * - A failure is shared by the followers that have seen one before, or that have waited for more than half of a call's timeout.
 *   The first of the others becomes the leader.
 * - When the leader's client leaves, the first follower becomes the leader.
 * - When no call has begun for a whole timeout, one follower becomes a second leader.
 * - A follower waits for two timeouts at most, a call of its own included, which gets half a timeout at least. It waits longer
 *   only once the upstream has answered.
 */
export class SingleFlight<T, F> {
  readonly #inFlight = new Map<string, InFlight<T, F>>();

  /**
   * @param timeout milliseconds that the caller's own call may take.
   * @param client aborts when the caller does not want to wait any longer.
   * @returns undefined when the caller has left.
   */
  join(key: string, timeout: number, client: AbortSource): Joined<T, F> | Promise<Joined<T, F> | undefined> {
    const known = this.#inFlight.get(key);
    if (known !== undefined) return known.follow(timeout, client);
    const begun: InFlight<T, F> = new InFlight(() => {
      // Another one may have begun since.
      if (this.#inFlight.get(key) === begun) this.#inFlight.delete(key);
    });
    this.#inFlight.set(key, begun);
    return begun.lead(0);
  }
}

class InFlight<T, F> {
  readonly #leaders = new Set<{ isAnswered: boolean }>();
  /** In the order of their arrival. */
  readonly #followers = new Set<Follower<T, F>>();
  readonly #over: () => void;
  /** When the latest leader began. */
  #ledSince = 0;

  constructor(over: () => void) {
    this.#over = over;
  }

  lead(waited: number): Leader<T, F> {
    const leader = { isAnswered: false };
    this.#leaders.add(leader);
    this.#ledSince = performance.now();
    return {
      waited,
      answered: () => {
        leader.isAnswered = true;
      },
      settle: (settlement) => {
        if (this.#leaders.delete(leader)) this.#settle(settlement);
      },
    };
  }

  follow(timeout: number, client: AbortSource): Promise<Joined<T, F> | undefined> {
    return new Promise((resolve) => {
      if (client.aborted) return resolve(undefined);
      const release = (joined: Joined<T, F> | undefined) => {
        clearTimeout(follower.timer);
        this.#followers.delete(follower);
        client.removeEventListener('abort', departed);
        resolve(joined);
      };
      const departed = { handleEvent: () => release(undefined) };
      const since = performance.now();
      const follower: Follower<T, F> = {
        since,
        timeout,
        failures: 0,
        isLate: false,
        lastFailure: undefined,
        timer: timerAt(since + BACKUP * timeout, () => this.#backUp(follower)),
        release,
      };
      this.#followers.add(follower);
      client.addEventListener('abort', departed);
    });
  }

  get #isAnswered(): boolean {
    return [...this.#leaders].some(({ isAnswered }) => isAnswered);
  }

  #settle(settlement: Settlement<T, F>): void {
    if (settlement !== undefined && 'result' in settlement) {
      for (const follower of this.#followers) follower.release(settlement);
      this.#over();
      return;
    }
    if (settlement !== undefined) this.#fail(settlement);
    this.#dismissLate();
    // Another leader is still at work, and may succeed.
    if (this.#leaders.size > 0) return;
    if (settlement !== undefined) this.#dismiss(isHopeless);
    this.#handOver();
  }

  /** Makes the first follower that has time for a call the leader; without one all are dismissed. */
  #handOver(): void {
    const next = [...this.#followers].find(hasTimeToCall);
    if (next !== undefined) {
      this.#promote(next);
      return;
    }
    this.#dismiss(() => true);
    this.#over();
  }

  #fail(failed: { readonly failure: F }): void {
    for (const follower of this.#followers) {
      follower.failures += 1;
      follower.lastFailure = failed;
    }
  }

  #promote(follower: Follower<T, F>): void {
    follower.release(this.lead(waitOf(follower)));
  }

  /** Makes the follower a second leader where no call can be under way: what a leader does before its call may hang. */
  #backUp(follower: Follower<T, F>): void {
    const { since, timeout } = follower;
    const mayCallBeUnderWay = performance.now() - this.#ledSince < timeout;
    if (!mayCallBeUnderWay && !this.#isAnswered && hasTimeToCall(follower)) {
      this.#promote(follower);
      return;
    }
    follower.timer = timerAt(since + DEADLINE * timeout, () => {
      follower.isLate = true;
      this.#dismissLate();
    });
  }

  /** Dismisses the followers whose deadline has passed, unless the upstream has answered and the rest is being done. */
  #dismissLate(): void {
    if (!this.#isAnswered) this.#dismiss(({ isLate }) => isLate);
  }

  #dismiss(whom: (wait: Wait) => boolean): void {
    for (const follower of this.#followers)
      if (whom(follower)) follower.release(follower.lastFailure ?? { timedOut: true, waited: waitOf(follower) });
  }
}

/** @param at milliseconds of the process's monotonic clock. */
function timerAt(at: number, callback: () => void): NodeJS.Timeout {
  return setTimeout(callback, Math.min(at - performance.now(), LONGEST_TIMER));
}

/** Milliseconds. */
function waitOf({ since }: Wait): number {
  return performance.now() - since;
}

function isHopeless(wait: Wait): boolean {
  return wait.failures >= MOST_FAILURES || waitOf(wait) > wait.timeout * LONG_WAIT;
}

function hasTimeToCall(wait: Wait): boolean {
  return waitOf(wait) <= wait.timeout * LATEST_CALL;
}
