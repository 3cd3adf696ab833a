import { type Deferred, deferred } from '../../lib/time.ts';
import type { Refusal } from '../../plugins-sdk/index.ts';
import { type StateArea, update } from '../../plugins-sdk/state.ts';
import { unavailable } from '../shared/upstream.ts';
import {
  EMPTY,
  type Ledger,
  type Limits,
  LONGEST_PAUSE_MS,
  ledgerText,
  readLedger,
  rolled,
  type Use,
  usesOf,
  WINDOWS,
  withCalls,
} from './ledger.ts';

/** Milliseconds by which the timer of a retry, which waits for the same moment, may fire early. */
const TIMER_SLACK_MS = 10;

export interface QuotaOptions {
  readonly api: string;
  readonly limits: Limits;
  /** The ledgers that all processes share; undefined: this process counts for itself. */
  readonly area: StateArea | undefined;
  /** Epoch milliseconds. */
  now(): number;
}

/** The quota of one API. Calls that arrive together are counted by one request to the engine. */
export class Quota {
  readonly #options: QuotaOptions;
  readonly #waiting: Deferred<Refusal | undefined>[] = [];
  /** The ledger as this process knows it, which decides while the engine is unreachable. */
  #ledger: Ledger;
  #isAsking = false;

  /** @param before the API's quota before a reload. */
  constructor(options: QuotaOptions, before?: Quota) {
    this.#options = options;
    this.#ledger = before === undefined ? EMPTY : before.#ledger;
  }

  /** Counts a call. @returns the refusal, if none is allowed now. */
  take(): Promise<Refusal | undefined> {
    const turn = deferred<Refusal | undefined>();
    this.#waiting.push(turn);
    if (!this.#isAsking) void this.#ask();
    return turn.promise;
  }

  /** Stops the calls of all processes for a time in milliseconds. */
  pause(milliseconds: number): void {
    // Whole milliseconds: a ledger with a fraction cannot be read.
    const until = this.#options.now() + Math.min(Math.ceil(milliseconds), LONGEST_PAUSE_MS) - TIMER_SLACK_MS;
    const paused = (ledger: Ledger) => ({ ...ledger, until: Math.max(ledger.until, until) });
    // Calls stop here at once; the engine learns of it a moment later.
    this.#ledger = paused(this.#ledger);
    void this.#change(paused);
  }

  /** Returns the use of each window, as far as this process knows. */
  uses(): readonly Use[] {
    return usesOf(this.#present, this.#options.limits);
  }

  get #present(): Ledger {
    return rolled(this.#ledger, this.#options.now());
  }

  async #ask(): Promise<void> {
    this.#isAsking = true;
    while (this.#waiting.length > 0) {
      const turns = this.#waiting.splice(0);
      const granted = await this.#grant(turns.length);
      const refusal = granted < turns.length ? this.#refusal() : undefined;
      for (const [i, turn] of turns.entries()) turn.resolve(i < granted ? undefined : refusal);
    }
    this.#isAsking = false;
  }

  /** Counts as many calls as are allowed. @returns their number. */
  async #grant(wanted: number): Promise<number> {
    const { limits, now } = this.#options;
    let granted = 0;
    if (this.#present.until > now()) return granted;
    await this.#change((ledger) => {
      const room = usesOf(ledger, limits).map(({ calls, limit }) => limit - calls);
      granted = ledger.until > now() ? 0 : Math.max(0, Math.min(wanted, ...room));
      return withCalls(ledger, granted);
    });
    return granted;
  }

  async #change(change: (ledger: Ledger) => Ledger): Promise<void> {
    const { api, area, now } = this.#options;
    const next = (ledger: Ledger) => change(rolled(ledger, now()));
    const options = { ttl: WINDOWS.perDay };
    const asked = area && update(area, api, (held) => ledgerText(next(readLedger(held))), options);
    const text = await asked?.catch(() => undefined);
    // Read only now: other changes may have ended since the engine was asked, and a pause may have begun.
    const ledger = text === undefined ? next(this.#ledger) : readLedger(text);
    this.#ledger = { ...ledger, until: Math.max(ledger.until, this.#present.until) };
  }

  #refusal(): Refusal {
    const now = this.#options.now();
    const { until } = this.#present;
    if (until > now) return unavailable('the upstream wants no calls yet: Retry-After', until - now);
    const full = this.uses().filter(({ calls, limit }) => calls >= limit);
    const endsAt = Math.max(now, ...full.map((use) => use.endsAt));
    return unavailable(`the quota is used up: ${full.map(({ name }) => name).join(', ')}`, endsAt - now);
  }
}
