import { type Decimal, isOne } from '../shared/decimal.ts';
import type { CompiledPath } from '../shared/json-path/index.ts';
import type { AbiType } from './abi.ts';
import type { Combine } from './combine.ts';
import { PlanError } from './fault.ts';

/** One value to encode: its path, ABI type and multiplier. */
export interface PlannedValue {
  readonly type: AbiType;
  readonly path: CompiledPath;
  readonly times: Decimal | undefined;
  /** Whether an integer that would be truncated is refused. */
  readonly exact: boolean;
}

export type Plan = readonly PlannedValue[];

/** The lists of an encoding, as far as they are known. Members belong together by position. */
export interface Lists {
  readonly types?: readonly AbiType[] | undefined;
  readonly paths?: readonly CompiledPath[] | undefined;
  /** One multiplier for each path, or one for all; absent: none. */
  readonly times?: readonly (Decimal | undefined)[] | undefined;
  readonly exact?: boolean | undefined;
  /** How all values that the paths find become one. */
  readonly combine?: Combine | undefined;
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
