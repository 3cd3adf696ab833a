import type { Exchange } from './exchange.ts';

/** What a plugin's function may use to learn that it should stop. */
export interface Call {
  /** Aborts when the plugin's budget ends or the client disconnects. */
  readonly signal: AbortSignal;
}

/** How much time one plugin has left in one request; shared by all its hooks of that request. */
export class Ledger implements Call {
  readonly budget: number;
  #remaining: number;
  readonly #spent: { readonly stage: string; readonly milliseconds: number }[] = [];
  readonly #exchange: Exchange | undefined;
  #controller: AbortController | undefined;

  /** @param exchange whose client's disconnect ends the work too, if it does. */
  constructor(budget: number, exchange?: Exchange) {
    this.budget = budget;
    this.#remaining = budget;
    this.#exchange = exchange;
  }

  get remaining(): number {
    return this.#remaining;
  }

  /** What each function that was called has used, in the order of their ends. */
  get spent(): readonly { readonly stage: string; readonly milliseconds: number }[] {
    return this.#spent;
  }

  get exhausted(): boolean {
    return this.#remaining <= 0;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      const client = this.#exchange?.signal;
      if (client?.aborted || this.exhausted) controller.abort();
      else client?.addEventListener('abort', () => controller.abort(), { once: true });
    }
    return this.#controller.signal;
  }

  charge(milliseconds: number): void {
    this.#remaining -= milliseconds;
    if (this.exhausted) this.#controller?.abort();
  }

  exhaust(): void {
    this.charge(Math.max(this.#remaining, 0));
  }

  note(stage: string, milliseconds: number): void {
    this.#spent.push({ stage, milliseconds });
  }

  /** Charges a whole call. @returns whether the budget has ended. */
  spend(stage: string, milliseconds: number): boolean {
    this.charge(milliseconds);
    this.note(stage, milliseconds);
    return this.exhausted;
  }
}

/** The time of one invocation, which may stand still while the rest of the pipeline works. */
export class Stopwatch {
  readonly ledger: Ledger;
  readonly #stage: string;
  #onEnd: (() => void) | undefined;
  #since: number;
  #used = 0;
  #paused = 0;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;

  /** @param since when the invocation began, as `performance.now()` tells it. */
  constructor(ledger: Ledger, stage: string, since: number) {
    this.ledger = ledger;
    this.#stage = stage;
    this.#since = since;
  }

  /**
   * Called once the function turned out to be asynchronous: until then no timer is worth its cost.
   * @param onEnd called when the budget ends.
   */
  arm(onEnd: () => void): void {
    this.#onEnd = onEnd;
    if (this.#paused === 0) this.#startTimer();
  }

  get exhausted(): boolean {
    return this.ledger.exhausted;
  }

  /** Once stopped, nothing is charged any more. */
  pause(): void {
    if (this.#paused++ > 0 || this.#stopped) return;
    this.#charge();
    clearTimeout(this.#timer);
  }

  resume(): void {
    if (--this.#paused > 0 || this.#stopped) return;
    this.#since = performance.now();
    if (this.#onEnd !== undefined) this.#startTimer();
  }

  /** @returns whether the budget has ended. */
  stop(): boolean {
    if (!this.#stopped) {
      this.#stopped = true;
      clearTimeout(this.#timer);
      if (this.#paused === 0) this.#charge();
      this.ledger.note(this.#stage, this.#used);
    }
    return this.exhausted;
  }

  #charge(): void {
    const now = performance.now();
    const milliseconds = now - this.#since;
    // What is charged once is not charged again: a budget that ends by its timer is spent exactly.
    this.#since = now;
    this.#used += milliseconds;
    this.ledger.charge(milliseconds);
  }

  #startTimer(): void {
    this.#timer = setTimeout(
      () => {
        this.#charge();
        this.ledger.exhaust();
        this.#onEnd?.();
      },
      Math.max(this.ledger.remaining, 0),
    );
  }
}
