import { unicodeEscape } from '../lib/text.ts';

const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu;
/** A quick first test: most texts are ASCII. */
const BEYOND_ASCII = /[^\x20-\x7e]/;
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/**
 * Escapes text so that it stays on its line and does nothing to a terminal. Control characters, line separators,
 * bidirectional overrides and lone surrogates become `\n`, `\u001b` and the like. Inside a JSON string the result still
 * means the same.
 */
export function escapeUnprintable(text: string): string {
  if (!BEYOND_ASCII.test(text)) return text;
  return text.replace(UNPRINTABLE, (char) => SHORT[char] ?? unicodeEscape(char));
}

/** Returns a line for each row of cells; every column but the last is as wide as its widest cell. */
export function align(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ');
  return rows.map((row) => line(row).trimEnd());
}

/** Returns the code of a system error, such as `ENOENT`, or `unknown`. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}
