import { unmarkedText } from '../../lib/json/numbers.ts';
import { keys } from '../../plugins-sdk/config.ts';
import { type Endpoint, type Exchange, type Parameters, Refusal } from '../../plugins-sdk/index.ts';
import { type Decimal, isOne } from '../shared/decimal.ts';
import type { CompiledPath } from '../shared/json-path/index.ts';
import { declaredNames } from '../shared/path-parameters.ts';
import { asWritten } from '../shared/written-parameters.ts';
import type { AbiType } from './abi.ts';
import { type Field, type Lists, PlanError, readList } from './lists.ts';

/** One value to encode: its path, ABI type and multiplier. */
export interface PlannedValue {
  readonly type: AbiType;
  readonly path: CompiledPath;
  readonly times: Decimal | undefined;
  /** Whether an integer that would be truncated is refused. */
  readonly exact: boolean;
}

export type Plan = readonly PlannedValue[];

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

/** Checks that the operator's lists fit each other, as far as they are known before a request. @throws PlanError */
export function checkPinned(lists: Lists, isTimesDelegated: boolean): void {
  const { types = [] } = lists;
  checkLengths(lists, types.length === 1 && !isTimesDelegated ? ', or set combine to make one number of them' : '');
  const multiplied = types.find((type, i) => !isInteger(type) && multiplierOf(lists, i) !== undefined);
  const wrong = isTimesDelegated && !types.some(isInteger) ? types[0] : multiplied;
  if (wrong !== undefined) throw onlyIntegers(wrong);
}

/**
 * Builds the plan of complete lists.
 * @throws PlanError if their lengths do not fit, or a type that is no integer would be multiplied.
 */
export function planOf(lists: Lists): Plan {
  checkLengths(lists);
  const { types = [], paths = [], exact = false, combine } = lists;
  return paths.flatMap((path, i) => {
    const type = types[combine === undefined ? i : 0];
    const times = multiplierOf(lists, i);
    if (type === undefined) return [];
    if (isInteger(type)) return { type, path, times, exact };
    // A requester who must send `_times` for a type that is no integer may send 1, which changes nothing.
    if (times !== undefined && !isOne(times)) throw onlyIntegers(type);
    return { type, path, times: undefined, exact };
  });
}

/** Returns the multiplier of the value at an index. */
export function multiplierOf({ times = [] }: Lists, index: number): Decimal | undefined {
  return times.length === 1 ? times[0] : times[index];
}

export function isInteger({ kind }: AbiType): boolean {
  return kind === 'int';
}

/** Checks the lists beside `combine`, which makes one value: types and multipliers have one member at most. */
function checkCombined({ types = [], times = [] }: Lists): void {
  const [type, ...others] = types;
  if (type === undefined || others.length > 0 || !isInteger(type))
    throw new PlanError('type', 'combine makes one number: write one integer type, such as int256');
  if (times.length > 1) throw new PlanError('times', 'combine makes one number: write one multiplier');
}

/** Checks that the lists are equally long. @param advice a further remedy, which operators have and requesters do not. */
function checkLengths({ types, paths, times, combine }: Lists, advice = ''): void {
  if (combine !== undefined) {
    checkCombined({ types, times });
    return;
  }
  if (types !== undefined && paths !== undefined && types.length !== paths.length) {
    const message = `lists ${counted(paths)}, and type lists ${counted(types)}: write one type for each path${advice}`;
    throw new PlanError('path', message);
  }
  const [field, list] = types === undefined ? ['path', paths] : ['type', types];
  if (times === undefined || list === undefined || times.length === 1 || times.length === list.length) return;
  const message = `lists ${times.length} multipliers, and ${field} lists ${counted(list)}: write one for all, or one for each`;
  throw new PlanError('times', message);
}

function counted({ length }: readonly unknown[]): string {
  return length === 1 ? '1 value' : `${length} values`;
}

function onlyIntegers({ name }: AbiType): PlanError {
  return new PlanError('times', `only integers can be multiplied, not ${name}`);
}
