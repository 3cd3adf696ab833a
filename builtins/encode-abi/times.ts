import { type Decimal, parseDecimal } from '../shared/decimal.ts';
import { PlanError } from './fault.ts';

const MAX_TIMES_TEXT = 100;
const MAX_TIMES_EXPONENT = 77;

/**
 * Reads a multiplier such as `1e18`, `100`, `-0.5` or `1e-6`.
 *
 * @throws PlanError when the text is no decimal number, is longer than 100 characters, exceeds 10^77 in magnitude, or has
 * a last digit below 10^-77.
 */
export function parseTimes(text: string): Decimal {
  const fault = (message: string) => new PlanError('times', message);
  if (text.length > MAX_TIMES_TEXT) throw fault(`times is longer than ${MAX_TIMES_TEXT} characters`);
  const times = parseDecimal(text);
  if (times === undefined) throw fault('times is not a decimal number such as 100, 0.5 or 1e18');
  const magnitude = times.digits.length + times.exponent - 1;
  const isTooLarge = magnitude > MAX_TIMES_EXPONENT || (magnitude === MAX_TIMES_EXPONENT && times.digits !== '1');
  if (isTooLarge) throw fault(`times is larger than 1e${MAX_TIMES_EXPONENT}`);
  if (times.exponent < -MAX_TIMES_EXPONENT) throw fault(`times is finer than 1e-${MAX_TIMES_EXPONENT}`);
  return times;
}
