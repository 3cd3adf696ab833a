import { unmarkedText } from '../../lib/json/numbers.ts';
import { keys } from '../../plugins-sdk/config.ts';
import { type Endpoint, type Exchange, type Parameters, Refusal } from '../../plugins-sdk/index.ts';
import { declaredNames } from '../shared/path-parameters.ts';
import { asWritten } from '../shared/written-parameters.ts';
import { type Field, PlanError } from './fault.ts';
import { readList } from './lists.ts';
import { checkPinned, type Lists, type Plan, planOf } from './plan.ts';

/** A field that the operator leaves to the requester. */
const DELEGATED = '*';
const FIELDS: readonly Field[] = ['type', 'path', 'times'];

/** The part of an endpoint's encoding that is known before a request comes. */
export type Prepared = NonNullable<ReturnType<typeof prepare>>;

/** Reads the encoding of an endpoint; undefined without one. @throws PlanError */
export function prepare(endpoint: Pick<Endpoint, 'block' | 'apiBlock'>) {
  const encoding = keys.encoding.of(endpoint);
  if (encoding === undefined) return undefined;
  const delegated = FIELDS.filter((field) => encoding[field] === DELEGATED);
  const operator = { declared: declaredNames(endpoint) };
  const [open] = delegated;
  if (encoding.combine !== undefined && open !== undefined)
    throw new PlanError(open, 'combine needs what it combines: write a value in place of *');
  let pinned: Lists = { exact: encoding.exact, combine: encoding.combine };
  for (const field of FIELDS) {
    const text = encoding[field];
    if (text !== undefined && text !== DELEGATED) pinned = { ...pinned, ...readList(field, text, operator) };
  }
  checkPinned(pinned, delegated.includes('times'));
  // The whole plan, if nothing is delegated.
  return { pinned, delegated, plan: delegated.length === 0 ? planOf(pinned) : undefined };
}

/** Completes the plan by what a request chooses. @throws Refusal 400 */
export function choose({ pinned, delegated }: Prepared, parameters: Parameters, exchange: Exchange): Plan {
  // Reports a missing parameter before any is parsed.
  const texts = delegated.map((field) => [field, reservedText(field, parameters, exchange)] as const);
  try {
    const chosen = texts.map(([field, text]) => readList(field, text, 'requester'));
    return planOf(Object.assign({}, pinned, ...chosen));
  } catch (cause) {
    if (!(cause instanceof PlanError)) throw cause;
    // The requester is blamed for a field that was delegated to it, never for one that the operator pinned.
    const culprit = delegated.includes(cause.field) ? cause.field : delegated[0];
    throw new Refusal(400, `Invalid \`_${culprit}\` request parameter`, { reason: cause.message });
  }
}

function reservedText(field: Field, parameters: Parameters, exchange: Exchange): string {
  const name = `_${field}`;
  const value = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
  if (value === undefined || value === null) throw new Refusal(400, `Endpoint requires \`${name}\` request parameter`);
  if (typeof value === 'string') return value;
  if (field === 'times' && typeof value === 'number')
    return unmarkedText(String(asWritten(parameters, exchange)[name]));
  throw new Refusal(400, `Invalid \`${name}\` request parameter`, { reason: 'no string' });
}
