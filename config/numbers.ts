const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** The number that a text in JSON's number syntax stands for, when a double keeps its digits. */
export function exactNumber(text: string): number | undefined {
  if (!JSON_NUMBER.test(text)) return undefined;
  const value = Number(text);
  return Number.isFinite(value) && keepsDigits(text, value) ? value : undefined;
}

/** Whether the double that a decimal literal was converted to is written with the same digits again. */
export function keepsDigits(literal: string, value: number): boolean {
  return significant(literal) === significant(String(value));
}

/** Digits without sign, point, exponent, leading and trailing zeros. */
function significant(literal: string): string {
  const digits = literal.replace(/[eE].*$/, '').replace(/[^0-9]/g, '');
  return digits.replace(/^0+/, '').replace(/0+$/, '');
}
