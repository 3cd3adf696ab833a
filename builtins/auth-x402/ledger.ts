import { jsonIn } from '../../lib/json/value.ts';
import { type StateArea, StateUnreadable, update } from '../../plugins-sdk/state.ts';

/** What all who share the payments know of them. Times are epoch milliseconds, lives milliseconds. */
export interface LedgerTerms {
  /** Payments mined before it may have been redeemed without being known here. */
  readonly began: number;
  /** How long after its block a payment is remembered at least, by all who redeem from now on. */
  readonly life: number;
  /** Shorter lives of the past: a payment mined before `until` may have been remembered for `life` only. */
  readonly past: readonly { readonly life: number; readonly until: number }[];
}

export interface LedgerOptions {
  readonly area: StateArea;
  /** Milliseconds from its block for which any endpoint here accepts a payment. */
  readonly life: number;
  /** Epoch milliseconds. */
  now(): number;
}

const KEY = 'ledger';

/** Since when payments are remembered, and for how long: an entry without an end beside them. */
export class Ledger {
  readonly #options: LedgerOptions;

  constructor(options: LedgerOptions) {
    this.#options = options;
  }

  /** The terms in force; begins the ledger where there is none, and raises its life to that of this service. */
  async terms(): Promise<LedgerTerms> {
    const text = await update(this.#options.area, KEY, (seen) => this.#inForce(seen), { durable: true });
    return parse(text);
  }

  #inForce(text: string | undefined): string {
    const { life, now } = this.#options;
    // An empty ledger may be one that was lost, with a restart or by an engine: what was mined before could have been redeemed.
    if (text === undefined) return JSON.stringify({ began: now(), life, past: [] });
    const terms = parse(text);
    if (terms.life >= life) return text;
    const known = terms.past.filter(({ until }) => until + life > now());
    return JSON.stringify({ began: terms.began, life, past: [...known, { life: terms.life, until: now() }] });
  }
}

const isTime = (value: unknown): value is number => Number.isSafeInteger(value);

const isLife = (past: Partial<LedgerTerms['past'][number]> | null) => isTime(past?.life) && isTime(past?.until);

/** @throws StateUnreadable for what nobody here wrote. */
function parse(text = ''): LedgerTerms {
  const { began, life, past }: Partial<LedgerTerms> = Object(jsonIn(text));
  if (!isTime(began) || !isTime(life) || !Array.isArray(past) || !past.every(isLife))
    throw new StateUnreadable('x402:ledger');
  return { began, life, past };
}

/** Milliseconds after its block for which a payment can be known not to have been redeemed before; below 0: never. */
export function lifeOf({ began, past }: LedgerTerms, minedAt: number): number {
  if (minedAt < began) return -1;
  const lives = past.filter(({ until }) => minedAt <= until).map(({ life }) => life);
  return Math.min(Number.POSITIVE_INFINITY, ...lives);
}
