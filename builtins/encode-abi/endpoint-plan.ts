import { keys } from '../../plugins-sdk/config.ts';
import { type Endpoint, type Exchange, inexactParameters, type Parameters, Refusal } from '../../plugins-sdk/index.ts';
import {
  checkPinned,
  type Field,
  type Origin,
  type Pinned,
  type Plan,
  PlanError,
  parseMultipliers,
  parsePaths,
  parseTypes,
  planOf,
} from './plan.ts';

/** A field that the operator leaves to the requester. */
export const DELEGATED = '*';
const FIELDS: readonly Field[] = ['type', 'path', 'times'];

/** What is known of an endpoint's encoding before a request comes. */
export interface Prepared {
  readonly pinned: Pinned;
  readonly delegated: readonly Field[];
  /** The whole plan, where nothing is delegated. */
  readonly plan: Plan | undefined;
}

function readField(field: Field, text: string, origin: Origin): Pinned {
  if (field === 'type') return { types: parseTypes(text, origin) };
  if (field === 'path') return { paths: parsePaths(text, origin) };
  return { times: parseMultipliers(text, origin) };
}

function complete({ types, paths, times, exact = false }: Pinned): Plan {
  if (types === undefined || paths === undefined) throw new Error('an encoding has a type and a path');
  return planOf({ types, paths, times, exact });
}

export function delegatedOf(endpoint: Pick<Endpoint, 'block' | 'apiBlock'>): readonly Field[] {
  const encoding = keys.encoding.of(endpoint);
  return FIELDS.filter((field) => encoding?.[field] === DELEGATED);
}

/** @throws PlanError */
export function prepare(endpoint: Pick<Endpoint, 'block' | 'apiBlock'>): Prepared | undefined {
  const encoding = keys.encoding.of(endpoint);
  if (encoding === undefined) return undefined;
  const delegated = delegatedOf(endpoint);
  const texts = FIELDS.flatMap((field): [Field, string][] => {
    const text = encoding[field];
    return text === undefined || text === DELEGATED ? [] : [[field, text]];
  });
  const read = texts.map(([field, text]) => readField(field, text, 'operator'));
  const pinned: Pinned = Object.assign({ exact: encoding.exact }, ...read);
  checkPinned(pinned, delegated.includes('times'));
  return { pinned, delegated, plan: delegated.length === 0 ? complete(pinned) : undefined };
}

function reservedText(field: Field, parameters: Parameters, exchange: Exchange): string {
  const name = `_${field}`;
  const value = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
  if (value === undefined || value === null) throw new Refusal(400, `Endpoint requires \`${name}\` request parameter`);
  if (typeof value === 'string') return value;
  // A plugin may have replaced what the client sent.
  const isExact = value !== exchange.parameters[name] || inexactParameters.get(exchange)?.has(name) !== true;
  if (field === 'times' && typeof value === 'number' && isExact) return String(value);
  throw new Refusal(400, `Invalid \`${name}\` request parameter`, {
    reason: isExact ? 'no string' : 'a rounded number',
  });
}

/** The plan of a request that chooses a part of it. @throws Refusal 400 */
export function choose({ pinned, delegated }: Prepared, parameters: Parameters, exchange: Exchange): Plan {
  const texts = delegated.map((field) => reservedText(field, parameters, exchange));
  try {
    const chosen = delegated.map((field, index) => readField(field, texts[index] ?? '', 'requester'));
    return complete(Object.assign({}, pinned, ...chosen));
  } catch (cause) {
    if (!(cause instanceof PlanError)) throw cause;
    throw blame(cause, delegated);
  }
}

/** Blames the requester for a field that was delegated to it, never for one that the operator pinned. */
function blame({ field, message }: PlanError, delegated: readonly Field[]): Refusal {
  const culprit = delegated.includes(field) ? field : delegated[0];
  return new Refusal(400, `Invalid \`_${culprit}\` request parameter`, { reason: message });
}
