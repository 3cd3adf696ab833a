import { canonicalJson } from '../../lib/json/canonical-json.ts';
import { isRecord } from '../../lib/json/value.ts';
import { type Exchange, type Json, type Parameters, Refusal, writtenParameters } from '../../plugins-sdk/index.ts';
import { INEXACT, invalidParameter } from './parameter-value.ts';

/**
 * Replaces each number that a double would round by its marked text, unless a plugin has changed the number.
 * @throws Refusal 400
 */
export function asWritten(given: Parameters, exchange: Exchange): Parameters {
  const written = writtenParameters.get(exchange);
  if (written === undefined) return given;
  // A plugin may have left some out: a name such as toString would be found in every object.
  const kept = Object.entries(written).filter(([name]) => Object.hasOwn(given, name));
  const digits = kept.map(([name, marked]) => [
    name,
    withDigits(name, { value: given[name], before: exchange.parameters[name], marked }),
  ]);
  return { ...given, ...Object.fromEntries(digits) };
}

/** A value, its form before plugins could change it, and that form with marked texts. */
interface Changed {
  readonly value: Json | undefined;
  readonly before: Json | undefined;
  readonly marked: Json | undefined;
}

/** Returns the value with marked texts where it is unchanged. @throws Refusal 400 for a list whose changes are unclear */
export function withDigits(name: string, { value, before, marked }: Changed): Json | undefined {
  if (value === undefined || before === undefined || marked === undefined || marked === before) return value;
  // Canonical JSON compares 0 and -0 as equal.
  if (canonicalJson(value) === canonicalJson(before)) return marked;
  if (Array.isArray(value) && Array.isArray(before) && Array.isArray(marked)) {
    if (value.length !== before.length) throw new Refusal(400, invalidParameter(name, INEXACT));
    return value.map((item, i) => withDigits(name, { value: item, before: before[i], marked: marked[i] }) ?? null);
  }
  if (!isRecord(value) || !isRecord(before) || !isRecord(marked)) return value;
  const members = Object.entries(value as Parameters).map(([key, member]) => [
    key,
    withDigits(name, { value: member, before: (before as Parameters)[key], marked: (marked as Parameters)[key] }),
  ]);
  return Object.fromEntries(members);
}
