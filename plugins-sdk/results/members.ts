import { plainObject } from '../../kernel/refusal.ts';
import { WrongShape } from '../../kernel/stages.ts';
import { type Hex, isHex } from '../../lib/eth/hex.ts';
import { isRecord } from '../../lib/json/value.ts';
import { nearest } from '../../lib/suggest.ts';

/** The members of a plugin's result, unchecked. */
export type Members = Readonly<Record<string, unknown>>;

/** Makes the error for a wrong result. @param detail names the member and its right form, never its value: that may be secret. */
export function wrong(detail: string): WrongShape {
  return new WrongShape(`returned something of the wrong shape: ${detail}`);
}

/** Checks a condition of a result. @throws WrongShape */
export function ensure(condition: boolean, detail: string): asserts condition {
  if (!condition) throw wrong(detail);
}

/** Returns whether a value is an HTTP status, `from` or more. */
export function isStatus(status: unknown, from: number): status is number {
  return typeof status === 'number' && Number.isInteger(status) && status >= from && status <= 599;
}

/** Returns a result's members. @param known their names. @throws WrongShape for a misspelt name, which would be ignored. */
export function membersOf(value: unknown, known: readonly string[], what = 'it'): Members {
  if (!isRecord(value)) throw wrong(`${what} must be an object {${known.join(', ')}}`);
  // This runs for every result of a plugin, and a list of the keys would cost half as much again.
  for (const name in value) {
    if (known.includes(name)) continue;
    const absent = known.filter((member) => !(member in value));
    const meant = nearest(name, absent);
    if (meant !== undefined)
      throw new WrongShape(`returned a member ${JSON.stringify(name)}, did you mean "${meant}"?`);
  }
  return value;
}

/** Reads `0x` hex of at least one byte. @throws WrongShape */
export function hexIn(value: unknown, name: string): Hex {
  if (!isHex(value) || value === '0x') throw wrong(`${name} must be 0x hex`);
  return value;
}

/** Names of members that are reserved in every answer. */
export const RESERVED: readonly string[] = ['node', 'endpointId', 'timestamp', 'signature', 'proof', '__proto__'];

/** Returns a frozen copy of an object of JSON. @throws WrongShape */
export function jsonObject(value: unknown, what: string): Readonly<Record<string, unknown>> {
  try {
    if (isRecord(value)) return plainObject(value);
  } catch {}
  throw wrong(`${what} must be an object of JSON`);
}
