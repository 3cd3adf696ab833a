import { hint } from '../../lib/text/suggest.ts';
import { type DeclaredParameter, declaredParameters, error, warning } from '../../plugins-sdk/checks.ts';
import type { CheckContext, EndpointDraft, Finding, Json } from '../../plugins-sdk/index.ts';
import { childPath } from '../../plugins-sdk/schema/path.ts';
import { addedBy, boundsOf, type Rule, Uncountable } from './price.ts';
import type { Accept } from './terms.ts';

const UINT256_BITS = 256n;

const ONE_ITEM =
  'counts one item always, since the parameter is neither a list nor a text: for so much times a number leave out "each"';

/** Findings of what an endpoint costs. @param at of the amount. */
export function checkAmount(at: string, amount: Accept['amount'], endpoint: EndpointDraft, context: CheckContext) {
  const { min, max } = boundsOf(amount);
  const isFixed = typeof amount === 'string';
  const top = isFixed ? at : `${at}.max`;
  return [
    ...(BigInt(max) >> UINT256_BITS === 0n ? [] : [error(top, 'is more than any token can hold (a uint256)')]),
    ...(BigInt(min) > BigInt(max) ? [error(top, 'is less than the base')] : []),
    ...(isFixed || 'by' in amount ? [] : Object.entries(amount.per)).flatMap(([name, rule]) =>
      checkRule(childPath(`${at}.per`, name), rule, name, declaredParameters(endpoint, context), endpoint),
    ),
  ];
}

function checkRule(
  at: string,
  rule: Rule,
  name: string,
  declared: readonly DeclaredParameter[],
  { api, name: endpoint }: EndpointDraft,
): Finding[] {
  const [parameter, second] = declared.filter((one) => one.name === name);
  const names = declared.flatMap(({ name: known, fixed, secret }) => (fixed === undefined && !secret ? [known] : []));
  if (parameter === undefined)
    return [error(at, `the endpoint ${api}/${endpoint} has no parameter "${name}"${hint(name, names, 'parameters')}`)];
  const { fixed, secret, required, schema, default: fallback } = parameter;
  if (second !== undefined) return [error(at, 'is declared twice: nobody could tell which one counts')];
  if (fixed !== undefined) return [error(at, 'is fixed, and so the same in every request: add it to the base')];
  if (secret) return [error(at, 'is secret: its price would tell what it is')];
  const choices: readonly Json[] = Array.isArray(schema?.enum) ? schema.enum : [];
  const isOpen = !required && fallback === undefined;
  const types = [schema?.type ?? 'string'].flat();
  const isOne = typeof rule === 'object' && 'each' in rule && !types.includes('string') && !types.includes('array');
  return [
    ...[...choices, ...(fallback === undefined ? [] : [fallback])].flatMap((value) => unpriced(at, rule, value)),
    ...(isOne ? [warning(at, ONE_ITEM)] : []),
    ...(isOpen ? [warning(at, 'may be left out and adds nothing then: give the parameter a default or required')] : []),
  ];
}

/** Whether a value that a request may have has no price. */
function unpriced(at: string, rule: Rule, value: Json): Finding[] {
  try {
    addedBy(rule, value);
    return [];
  } catch (cause) {
    if (!(cause instanceof Uncountable)) throw cause;
    return [error(at, `has no price for ${JSON.stringify(value)}, which the parameter may be: it ${cause.message}`)];
  }
}
