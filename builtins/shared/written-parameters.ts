import { isDeepStrictEqual } from 'node:util';
import { type Exchange, type Parameters, writtenParameters } from '../../plugins-sdk/index.ts';

/**
 * Parameters in which a marked text stands for each number that a double would round, unless a plugin has changed the value since the
 * client sent it.
 */
export function asWritten(given: Parameters, exchange: Exchange): Parameters {
  const written = Object.entries(writtenParameters.get(exchange) ?? {});
  const kept = written.filter(([name]) => isDeepStrictEqual(given[name], exchange.parameters[name]));
  return kept.length === 0 ? given : { ...given, ...Object.fromEntries(kept) };
}
