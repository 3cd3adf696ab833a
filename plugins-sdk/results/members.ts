import { type Hex, isHex } from '../../lib/eth/hex.ts';
import { isRecord } from '../../lib/json/value.ts';
import { misspelt } from '../../lib/text/suggest.ts';
import { plainObject, WrongShape } from '../kernel.ts';

export type Members = Readonly<Record<string, unknown>>;

/** @param detail names the member, and what it must be; never its value, which may be secret. */
export function wrong(detail: string): WrongShape {
  return new WrongShape(`returned something of the wrong shape: ${detail}`);
}

/** @throws WrongShape */
export function ensure(condition: boolean, detail: string): asserts condition {
  if (!condition) throw wrong(detail);
}

export function isString(value: unknown): value is string {
  return typeof value === 'string';
}

/** @param known members that it may have; a near miss would be ignored. @throws WrongShape */
export function membersOf(value: unknown, known: readonly string[]): Members {
  if (!isRecord(value)) throw wrong(`it must be an object {${known.join(', ')}}`);
  const odd = misspelt(value, known);
  if (odd !== undefined)
    throw new WrongShape(`returned a member ${JSON.stringify(odd.name)}, did you mean "${odd.meant}"?`);
  return value;
}

/** Whole bytes, at least one. @throws WrongShape */
export function hexIn(value: unknown, name: string): Hex {
  if (!isHex(value) || value === '0x') throw wrong(`${name} must be 0x hex`);
  return value;
}

/** @throws WrongShape */
export function textIn(value: unknown, name: string): string {
  if (!isString(value)) throw wrong(`${name} must be a text`);
  return value;
}

/** Members of every answer. */
export const RESERVED: readonly string[] = ['node', 'endpointId', 'timestamp', 'signature', 'proof', '__proto__'];

/** A frozen copy. @throws WrongShape */
export function jsonObject(value: unknown, what: string): Readonly<Record<string, unknown>> {
  try {
    if (isRecord(value)) return plainObject(value);
  } catch {}
  throw wrong(`${what} must be an object of JSON`);
}
