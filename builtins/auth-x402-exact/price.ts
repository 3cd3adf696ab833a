import { type Json, type Parameters, Refusal } from '../../plugins-sdk/index.ts';
import type { Parameter } from '../../plugins-sdk/keys.ts';
import { type Misfit, parameterSchema } from '../shared/parameter-schema.ts';
import { INEXACT, invalidParameter, valueIn } from '../shared/parameter-value.ts';
import type { Accept } from './terms.ts';

/** A price that depends on parameters. */
export type Tariff = Extract<Accept['amount'], { readonly per: object }>;
export type Rule = Tariff['per'][string];

/** A declared parameter, as far as it counts for a price. */
export type Counted = Pick<Parameter, 'name' | 'in' | 'default' | 'schema'>;

/** Between which a price is, in the smallest unit of the token. */
export function boundsOf(amount: Accept['amount']): { readonly min: string; readonly max: string } {
  if (typeof amount === 'string') return { min: amount, max: amount };
  return { min: 'by' in amount ? '0' : amount.base, max: amount.max };
}

/** Why a value has no price. */
export class Uncountable extends Error {}

export const TOO_DEAR = 'The request would cost more than is allowed: ask for less';

/** Characters of the choices that a refusal lists. */
const LONGEST_LIST = 120;

/** What a value adds to the price. @throws Uncountable */
export function addedBy(rule: Rule, value: Json): bigint {
  if (typeof rule === 'string') return BigInt(rule) * wholeNumber(value);
  if ('each' in rule) return BigInt(rule.each) * BigInt(itemsIn(value));
  const { values } = rule;
  const text = typeof value === 'object' ? undefined : String(value);
  const added = text !== undefined && Object.hasOwn(values, text) ? values[text] : undefined;
  if (added !== undefined) return BigInt(added);
  const choices = JSON.stringify(Object.keys(values)).slice(1, -1);
  throw new Uncountable(choices.length > LONGEST_LIST ? 'has no price' : `must be one of ${choices}`);
}

/** Digits alone, as a text, and numbers that a double holds exactly. */
function wholeNumber(value: Json): bigint {
  const isWhole =
    typeof value === 'number' ? Number.isSafeInteger(value) && value >= 0 : /^[0-9]{1,78}$/.test(textIn(value));
  if (!isWhole) throw new Uncountable('must be a whole number, 0 or more');
  return BigInt(value as number | string);
}

function textIn(value: Json): string {
  return typeof value === 'string' ? value : '';
}

/** An empty list is an item, as an empty text is: for upstreams it may mean all of them. */
function itemsIn(value: Json): number {
  if (Array.isArray(value)) return value.length || 1;
  if (typeof value === 'object') throw new Uncountable('must be a list, or a text with commas');
  return String(value).split(',').length;
}

interface Charged {
  readonly parameter: Counted;
  readonly rule: Rule;
  /** Why a value does not fit its schema. */
  readonly misfit: Misfit;
}

/** Says what a request costs by a tariff. */
export class Pricing {
  readonly #tariff: Tariff;
  readonly #counted: readonly Charged[];

  /** @param declared the parameters of the endpoint. */
  constructor(tariff: Tariff, declared: readonly Counted[]) {
    this.#tariff = tariff;
    this.#counted = Object.entries(tariff.per).flatMap(([name, rule]) => {
      const parameter = declared.find((one) => one.name === name);
      if (parameter === undefined) throw new Error(`no parameter "${name}"`);
      const { schema } = parameter;
      const misfit = schema === undefined ? () => undefined : parameterSchema({ schema }, '').misfit;
      return [{ parameter, rule, misfit }];
    });
  }

  /**
   * @param inexact names of numbers that were rounded.
   * @throws Refusal 400 for values that no request may have, or that would cost more than the maximum.
   */
  priceOf(given: Parameters, inexact?: ReadonlySet<string>): string {
    const { base, max } = this.#tariff;
    const price = this.#counted.reduce((sum, one) => sum + added(one, given, inexact), BigInt(base));
    if (price > BigInt(max)) throw new Refusal(400, TOO_DEAR);
    return String(price);
  }
}

/** What a request adds by one of its parameters. @throws Refusal 400 */
function added({ parameter, rule, misfit }: Charged, given: Parameters, inexact?: ReadonlySet<string>): bigint {
  const { name } = parameter;
  const value = valueIn(parameter, given);
  if (value === undefined) return 0n;
  const why = inexact?.has(name) ? INEXACT : misfit(value);
  if (why !== undefined) throw invalid(name, why);
  try {
    return addedBy(rule, value);
  } catch (error) {
    if (error instanceof Uncountable) throw invalid(name, error.message);
    throw error;
  }
}

/** As the parameters themselves are refused. */
function invalid(name: string, why: string): Refusal {
  return new Refusal(400, invalidParameter(name, why), { reason: `parameter "${name}" has no price` });
}
