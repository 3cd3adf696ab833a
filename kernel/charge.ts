import { type Budget, charging } from './budget.ts';

/** A budget ended; the guard's own, so that no plugin can throw it, nor be asked whether it did. */
export class Exhausted extends Error {
  readonly #own = true;

  static is(error: unknown): error is Exhausted {
    return typeof error === 'object' && error !== null && #own in error;
  }
}

/** One call of a plugin's function, as its budget sees it. It begins at once. */
export class Charge {
  readonly #budget: Budget;
  /** What the budget had noted before. */
  readonly #begun: number;
  #tell: (() => void) | undefined;
  /** Pieces of work under way that are charged to nobody. */
  #pauses = 0;
  #isOver = false;

  constructor(budget: Budget) {
    this.#budget = budget;
    this.#begun = charging.begin(budget);
  }

  /** Whether any time is left, that up to now charged. */
  hasTime(): boolean {
    return this.#isOver || charging.hasTime(this.#budget);
  }

  /** The call's end, or what `spent` makes when the budget ends first. */
  within(pending: Promise<unknown>, spent: () => Error): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#tell = () => reject(spent());
      charging.whenExhausted(this.#budget, this.#tell);
      pending.then(resolve, reject);
    });
  }

  /** Does work that takes none of the budget's time. */
  async pause<T>(work: () => Promise<T>): Promise<T> {
    if (!charging.hasTime(this.#budget)) throw new Error('the budget has ended');
    if (this.#isOver) return work();
    this.#pauses += 1;
    if (this.#pauses === 1) charging.pause(this.#budget, 1);
    try {
      return await work();
    } finally {
      this.#pauses -= 1;
      if (this.#pauses === 0 && !this.#isOver) charging.pause(this.#budget, -1);
    }
  }

  /** Nothing is charged any more. */
  end(stage: string): void {
    this.#isOver = true;
    if (this.#pauses > 0) charging.pause(this.#budget, -1);
    charging.end(this.#budget, stage, this.#begun, this.#tell);
  }
}
