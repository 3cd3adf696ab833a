const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
/** The most digits that `toPrecision` gives. */
const MOST_DIGITS = 100;

/** The number that a text in JSON's number syntax stands for, when a double holds its digits. */
export function exactNumber(text: string): number | undefined {
  if (!JSON_NUMBER.test(text)) return undefined;
  const value = Number(text);
  return Number.isFinite(value) && keepsDigits(text, value) ? value : undefined;
}

/** Whether the digits of a decimal literal survived its conversion to a double. */
export function keepsDigits(literal: string, value: number): boolean {
  const digits = significant(literal);
  if (digits === '') return value === 0;
  return digits.length <= MOST_DIGITS && significant(value.toPrecision(digits.length)) === digits;
}

/** Digits without sign, point, exponent, leading and trailing zeros. */
function significant(literal: string): string {
  const digits = literal.replace(/[eE].*$/, '').replace(/[^0-9]/g, '');
  return digits.replace(/^0+/, '').replace(/0+$/, '');
}
