import { jsonIn } from '../../lib/json/value.ts';
import { type StateArea, StateUnreadable, update } from '../../plugins-sdk/state.ts';

const KEY = 'ledger';

/**
 * Since when all who share the payments remember them: an entry without an end beside them. What was mined before may have been
 * redeemed without being known here.
 */
export class Ledger {
  readonly #area: StateArea;
  readonly #now: () => number;

  /** @param now epoch milliseconds. */
  constructor(area: StateArea, now: () => number) {
    this.#area = area;
    this.#now = now;
  }

  /**
   * Epoch milliseconds; begins the ledger where there is none. An empty one may be one that was lost, with a restart or by an engine.
   * @throws StateUnreadable for what nobody here wrote.
   */
  async began(): Promise<number> {
    const begun = (text: string | undefined) => text ?? JSON.stringify({ began: this.#now() });
    const text = await update(this.#area, KEY, begun, { durable: true });
    const { began }: { readonly began?: unknown } = Object(jsonIn(text ?? ''));
    if (typeof began !== 'number' || !Number.isSafeInteger(began)) throw new StateUnreadable('x402:ledger');
    return began;
  }
}
