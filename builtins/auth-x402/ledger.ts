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

/**
 * Begins the ledger where there is none, since it may have been lost.
 * @param isInForce whether it is begun anew, too, where payments were remembered for less than this config needs.
 * @throws StateUnreadable for what nobody here wrote.
 */
export type Ledger = (isInForce: boolean) => Promise<LedgerTerms>;

/**
 * Since when payments are remembered, and for how long: an entry without an end beside them.
 * @param life milliseconds from its block for which any endpoint here accepts a payment.
 * @param now epoch milliseconds.
 */
export function ledgerIn(area: StateArea, life: number, now: () => number): Ledger {
  const begin = () => JSON.stringify({ began: now(), life });
  return async (isInForce) => {
    const isTooShort = (text: string) => isInForce && parse(text).life < life;
    const change = (text: string | undefined) => (text === undefined || isTooShort(text) ? begin() : text);
    return parse(await update(area, KEY, change, { durable: true }));
  };
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
