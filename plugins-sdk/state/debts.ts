import { setImmediate as turn } from 'node:timers/promises';
import type { Log } from '../log.ts';

/** The log line of an unpaid debt. */
export interface DebtLine {
  readonly message: string;
  /** Tells an operator the creditor. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** What the service owes, such as a paid answer: a stop waits longer for it. */
export class Debts {
  readonly #open = new Set<{ readonly line: DebtLine | undefined }>();
  #waiting: (() => void)[] = [];

  get size(): number {
    return this.#open.size;
  }

  /**
   * Begins a debt.
   * @param line for the log if the debt is left when the service ends; without one nothing is lost.
   * @returns ends it; to be called once or more.
   */
  owe(line?: DebtLine): () => void {
    const debt = { line };
    this.#open.add(debt);
    return () => {
      this.#open.delete(debt);
      if (this.#open.size === 0) for (const resolve of this.#waiting.splice(0)) resolve();
    };
  }

  /** Resolves when nothing is owed. A debt may begin in the same turn as the work before it ends. */
  async paid(): Promise<void> {
    await turn();
    while (this.#open.size > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Says what is left, a line each, once. */
  tell(log: Pick<Log, 'error'>): void {
    for (const { line } of this.#open) if (line !== undefined) log.error(line.message, line.fields);
    this.#open.clear();
  }
}
