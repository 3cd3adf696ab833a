import type { Endpoint, Json } from '../../kernel/values.ts';
import { isCovered, keys, type Parameter, reservedParameters } from '../../plugins-sdk/keys.ts';
import { UsageError } from '../arguments.ts';

type Parameters = Readonly<Record<string, Json>>;

/**
 * Returns the part of a request that an endpoint's receipt covers: without fixed and secret parameters, with defaults.
 *
 * @returns it, and the names of the parameters that the config's defaults have added.
 * @throws UsageError for a parameter that the endpoint does not have.
 */
export function askedParameters(endpoint: Endpoint, sent: Parameters) {
  const declared = keys.parameters.of(endpoint) ?? [];
  const reserved: readonly string[] = reservedParameters(endpoint);
  const known = [...declared.map(({ name }) => name), ...reserved];
  const unknown = Object.keys(sent).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new UsageError(`option --parameters <json>: ${endpoint.api}/${endpoint.name} has no parameter "${unknown}"`);
  const covered = declared.filter(isCovered);
  const values = covered.flatMap((parameter) => {
    const value = isSent(parameter, sent) ? sent[parameter.name] : parameter.default;
    return value === undefined ? [] : [[parameter.name, value] as const];
  });
  const chosen = reserved.map((name) => [name, sent[name] ?? null] as const);
  const left = covered.filter((parameter) => parameter.default !== undefined && !isSent(parameter, sent));
  return { parameters: Object.fromEntries([...values, ...chosen]), defaults: left.map(({ name }) => name) };
}

/** Returns whether a parameter was sent; `null` counts as not sent, except in a body. */
function isSent({ name, in: place }: Parameter, sent: Parameters): boolean {
  return Object.hasOwn(sent, name) && (sent[name] !== null || place === 'body');
}
