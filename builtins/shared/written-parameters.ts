import { canonicalJson } from '../../lib/json/canonical-json.ts';
import { isRecord } from '../../lib/json/value.ts';
import { type Exchange, type Json, type Parameters, Refusal, writtenParameters } from '../../plugins-sdk/index.ts';
import { INEXACT, invalidParameter } from './parameter-value.ts';

/**
 * Parameters in which a marked text stands for each number that a double would round, unless a plugin has changed the number since the
 * client sent it.
 * @throws Refusal 400
 */
export function asWritten(given: Parameters, exchange: Exchange): Parameters {
  const written = writtenParameters.get(exchange);
  if (written === undefined) return given;
  const kept = Object.entries(written).map(([name, marked]) => [
    name,
    withDigits(name, { value: given[name], before: exchange.parameters[name], marked }),
  ]);
  return { ...given, ...Object.fromEntries(kept.filter(([, value]) => value !== undefined)) };
}

/** A value, what it was before a plugin may have changed it, and the same with marked texts. */
interface Changed {
  readonly value: Json | undefined;
  readonly before: Json | undefined;
  readonly marked: Json | undefined;
}

/** The value with the marked texts of what has not changed. @throws Refusal 400 for a list of which it is not known what has changed */
export function withDigits(name: string, { value, before, marked }: Changed): Json | undefined {
  if (value === undefined || before === undefined || marked === undefined || marked === before) return value;
  // Zero and its negative are one number of JSON.
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
