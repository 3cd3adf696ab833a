import { jsonIn } from '../../lib/json/value.ts';
import { type StateArea, StateUnreadable, update } from '../../plugins-sdk/state.ts';

const KEY = 'ledger';

/** What all who share the payments know of them. */
export interface LedgerTerms {
  /** Epoch milliseconds; payments mined before may have been redeemed without being known here. */
  readonly began: number;
  /** Milliseconds from its block for which each payment since then is remembered. */
  readonly life: number;
}

/** Since when payments are remembered, and for how long: an entry without an end beside them. */
export class Ledger {
  readonly #area: StateArea;
  readonly #life: number;
  readonly #now: () => number;

  /**
   * @param life milliseconds from its block for which any endpoint here accepts a payment.
   * @param now epoch milliseconds.
   */
  constructor(area: StateArea, life: number, now: () => number) {
    this.#area = area;
    this.#life = life;
    this.#now = now;
  }

  /**
   * Begins the ledger where there is none, since it may have been lost.
   * @param isInForce whether it is begun anew, too, where payments were remembered for less than this config needs.
   * @throws StateUnreadable for what nobody here wrote.
   */
  async terms(isInForce: boolean): Promise<LedgerTerms> {
    const begin = () => JSON.stringify({ began: this.#now(), life: this.#life });
    const isTooShort = (text: string) => isInForce && parse(text).life < this.#life;
    const change = (text: string | undefined) => (text === undefined || isTooShort(text) ? begin() : text);
    return parse(await update(this.#area, KEY, change, { durable: true }));
  }
}

/** @throws StateUnreadable */
function parse(text = ''): LedgerTerms {
  const { began, life }: Partial<LedgerTerms> = Object(jsonIn(text));
  if (!isTime(began) || !isTime(life)) throw new StateUnreadable('x402:ledger');
  return { began, life };
}

function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value);
}
