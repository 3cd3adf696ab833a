import { jsonIn } from '../../lib/json/value.ts';
import { type StateArea, StateUnavailable } from '../../plugins-sdk/index.ts';
import { StateUnreadable } from '../../plugins-sdk/state/area.ts';

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
/** Tries to write among others who write: each fails only where another succeeded. */
const TRIES = 20;

/** Since when payments are remembered, and for how long: an entry without an end beside them. */
export class Ledger {
  readonly #options: LedgerOptions;

  constructor(options: LedgerOptions) {
    this.#options = options;
  }

  /** The terms in force; begins the ledger where there is none, and raises its life to that of this service. */
  async terms(): Promise<LedgerTerms> {
    const { area, life } = this.#options;
    let text = await area.get(KEY);
    for (let tries = 0; tries < TRIES; tries += 1) {
      const terms = text === undefined ? undefined : parse(text);
      if (terms !== undefined && terms.life >= life) return terms;
      const next = terms === undefined ? this.#begin() : this.#raise(terms);
      const standing = await area.compareAndSet(KEY, text, JSON.stringify(next), { durable: true });
      if (standing === undefined) return next;
      text = standing.value;
    }
    throw new StateUnavailable('the ledger of payments changes all the time');
  }

  #begin(): LedgerTerms {
    const { life, now } = this.#options;
    // An empty ledger may be one that was lost, with a restart or by an engine: what was mined before could have been redeemed.
    return { began: now(), life, past: [] };
  }

  #raise({ began, life, past }: LedgerTerms): LedgerTerms {
    const now = this.#options.now();
    const known = past.filter(({ until }) => until + this.#options.life > now);
    return { began, life: this.#options.life, past: [...known, { life, until: now }] };
  }
}

const isTime = (value: unknown): value is number => Number.isSafeInteger(value);

const isLife = (past: Partial<LedgerTerms['past'][number]> | null) => isTime(past?.life) && isTime(past?.until);

/** @throws StateUnreadable for what nobody here wrote. */
function parse(text: string): LedgerTerms {
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
