import { jsonIn } from '../../lib/json/value.ts';
import { type StateArea, StateUnreadable, update } from '../../plugins-sdk/state.ts';

const KEY = 'ledger';

/** The ledger's one record, which all processes with the same payments share. */
export interface LedgerTerms {
  /** Epoch milliseconds. Payments mined earlier may have been redeemed without a record here. */
  readonly began: number;
  /** Milliseconds for which each later payment is remembered, counted from its block. */
  readonly life: number;
}

/**
 * Reads the ledger, and begins it if there is none, as after a loss.
 * @param isInForce whether this config is in force: a ledger with a shorter life than it needs is then begun anew.
 * @throws StateUnreadable for an entry that this service has not written.
 */
export type Ledger = (isInForce: boolean) => Promise<LedgerTerms>;

/**
 * Makes the function that reads the ledger: an entry without a TTL, in the area of the payments.
 * @param life milliseconds, from its block, for which any endpoint here accepts a payment.
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
  const { began = Number.NaN, life = Number.NaN }: Partial<LedgerTerms> = Object(jsonIn(text));
  if (![began, life].every(Number.isSafeInteger)) throw new StateUnreadable('x402:ledger');
  return { began, life };
}
