import type { AbortSource } from '../../plugins-sdk/index.ts';
import { LONGEST_TIMER } from '../../plugins-sdk/timer.ts';

/**
 * How the work of a leader has ended: with what all get, with a failure that followers may share, or without either,
 * because its client left.
 */
export type Settlement<T, F> = { readonly result: T } | { readonly failure: F } | undefined;

/** Who is to do the work. */
export interface Leader<T, F> {
  /** Milliseconds of waiting for others that were in vain. */
  readonly waited: number;
  /** The call has been answered: followers wait for as long as the rest of the work takes. */
  answered(): void;
  /** To be called once when the work has ended, however that was. */
  settle(settlement: Settlement<T, F>): void;
}

/** Nobody had anything in time, and there is none left for a call. */
export interface TimedOut {
  readonly timedOut: true;
  /** Milliseconds. */
  readonly waited: number;
}

/** What became of somebody who joined. */
export type Joined<T, F> = { readonly result: T } | { readonly failure: F } | TimedOut | Leader<T, F>;

/** Failures of others after which there is nothing to hope for. */
const MOST_FAILURES = 2;

/** All in timeouts of a call. */
const DEADLINE = 2;
/** Who has waited for longer shares the failure of a leader. */
const LONG_WAIT = 1 / 2;
/** A follower calls, too, when no call has begun for a whole timeout: later than a call that hangs has failed. */
const BACKUP = 1.25;
/** Until then there is time for a call that has a chance. */
const LATEST_CALL = 1.5;

interface Wait {
  readonly since: number;
  /** Milliseconds that a call may take. */
  readonly timeout: number;
  /** Of leaders, that it has seen. */
  failures: number;
  /** Its deadline is over. */
  isLate: boolean;
}

interface Follower<T, F> extends Wait {
  lastFailure: { readonly failure: F } | undefined;
  timer: NodeJS.Timeout | undefined;
  readonly release: (joined: Joined<T, F>) => void;
}

/**
 * Work that several requests want at the same time and one of them does: the leader. The others follow.
 *
 * A success is shared by all. When the leader's client goes away, the next in line leads. A failure is shared by those who
 * have seen another one or have waited for more than half of the time that a call may take; of the rest the first leads.
 * When no call has begun for longer than a call may take, one follower leads beside the others. Whatever leaders do, each
 * follower has a deadline, twice that time after it came: by then it has a result, a failure, or the end of a call of its
 * own, which had at least half of that time. Only for what comes after the answer to a call it waits longer.
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
  /** In the order in which they came. */
  readonly #followers = new Set<Follower<T, F>>();
  readonly #over: () => void;
  /** When the last of the leaders began. */
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
    // Another one may succeed.
    if (this.#leaders.size > 0) return;
    if (settlement !== undefined) this.#dismiss(isHopeless);
    this.#handOver();
  }

  /** The first for whom it is not too late leads. */
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

  /** A call, with the wait for its slot, may take long; other work before it may never end. */
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

  /** Nobody waits longer than until its deadline, unless there is an answer that only has to be finished. */
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
