import { setImmediate as turn } from 'node:timers/promises';
import type { Log } from '../log.ts';

/** The log line of an unpaid debt. */
export interface DebtLine {
  readonly message: string;
  /** Fields by which an operator finds the creditor. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** The debts of the service to clients, such as a paid answer. A stop waits longer for them. */
export class Debts {
  readonly #open = new Set<{ readonly line: DebtLine | undefined }>();
  #waiting: (() => void)[] = [];

  /** Number of open debts. */
  get size(): number {
    return this.#open.size;
  }

  /**
   * Begins a debt.
   * @param line the log line if the debt is open when the service ends; without one the client loses nothing.
   * @returns a function that ends the debt; further calls do nothing.
   */
  owe(line?: DebtLine): () => void {
    const debt = { line };
    this.#open.add(debt);
    return () => {
      this.#open.delete(debt);
      if (this.#open.size === 0) for (const resolve of this.#waiting.splice(0)) resolve();
    };
  }

  /** Resolves when nothing is owed. It waits one turn first, since work that ends may begin a debt in the same turn. */
  async paid(): Promise<void> {
    await turn();
    while (this.#open.size > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Logs each open debt in a line, once. */
  tell(log: Pick<Log, 'error'>): void {
    for (const { line } of this.#open) if (line !== undefined) log.error(line.message, line.fields);
    this.#open.clear();
  }
}
