import { nearest } from '../../lib/text/suggest.ts';
import { type AbiType, parseType, typeNames } from './abi.ts';
import { type Decimal, isFraction, parseTimes, TimesError } from './decimal.ts';
import { type CompiledPath, compilePath, PathError, splitList } from './json-path/index.ts';
import { mistakeIn } from './path-mistakes.ts';

/** The three members of an encoding. */
export type Field = 'type' | 'path' | 'times';

/** One value of the answer: where it is, what it becomes, and what it is multiplied by. */
export interface PlannedValue {
  readonly type: AbiType;
  readonly path: CompiledPath;
  readonly times: Decimal | undefined;
  /** Whether an integer that would be truncated is refused. */
  readonly exact: boolean;
}

export type Plan = readonly PlannedValue[];

/** What is wrong with an encoding, and with which member. */
export class PlanError extends Error {
  readonly field: Field;

  constructor(field: Field, message: string) {
    super(message);
    this.field = field;
  }
}

/** Types that a requester may choose. */
export const REQUESTER_TYPES = new Set(['int256', 'uint256', 'bool', 'bytes32', 'address', 'string', 'bytes']);
export const MAX_REQUESTER_TEXT = 1024;

export type Origin = 'operator' | 'requester';

/** @throws PlanError */
export function parseTypes(text: string, origin: Origin): readonly AbiType[] {
  return members('type', text, origin).map((name) => {
    const type = origin === 'operator' || REQUESTER_TYPES.has(name) ? parseType(name) : undefined;
    if (type !== undefined) return type;
    // What a client has sent stays out of the log.
    if (origin === 'requester') throw new PlanError('type', 'a member is no type that clients may choose');
    throw new PlanError('type', `"${name}" is no type${suggestion(name)}`);
  });
}

/** What other languages call their types, and what comes closest among those of the ABI. */
const MEANT: Readonly<Record<string, string>> = {
  ...{ number: 'int256', integer: 'int256', int: 'int256', long: 'int256', bigint: 'int256', uint: 'uint256' },
  ...{ float: 'int256', double: 'int256', decimal: 'int256', fixed: 'int256', ufixed: 'uint256' },
  ...{ boolean: 'bool', text: 'string', str: 'string', char: 'string', byte: 'bytes1', hex: 'bytes', hash: 'bytes32' },
};
const FRACTIONS = /^(?:number|float|double|decimal|u?fixed)$/;

function suggestion(name: string): string {
  const written = name.toLowerCase();
  const [, sized] = /^(u?int|bytes)\d+$/.exec(name) ?? [];
  if (sized !== undefined)
    return sized === 'bytes' ? ': bytes1 to bytes32' : `: ${sized}8 to ${sized}256, in steps of 8`;
  const meant = Object.hasOwn(MEANT, written) ? MEANT[written] : nearest(written, typeNames());
  if (meant === undefined) return ': write one of the elementary ABI types, such as int256, bool, bytes32 or string';
  return `, did you mean "${meant}"?${FRACTIONS.test(written) ? ' Fractions are kept with times, such as 1e18' : ''}`;
}

const counted = (count: number) => (count === 1 ? '1 value' : `${count} values`);

/** @throws PlanError */
export function parsePaths(text: string, origin: Origin): readonly CompiledPath[] {
  return members('path', text, origin).map((path) => {
    const mistake = origin === 'operator' ? mistakeIn(path) : undefined;
    if (mistake !== undefined) throw new PlanError('path', mistake);
    try {
      return compilePath(path, origin);
    } catch (error) {
      throw error instanceof PathError ? new PlanError('path', error.message) : error;
    }
  });
}

/** An empty member multiplies by nothing. @throws PlanError */
export function parseMultipliers(text: string, origin: Origin): readonly (Decimal | undefined)[] {
  return members('times', text, origin).map((times) => {
    try {
      return times === '' ? undefined : parseTimes(times);
    } catch (error) {
      throw error instanceof TimesError ? new PlanError('times', error.message) : error;
    }
  });
}

function members(field: Field, text: string, origin: Origin): string[] {
  if (origin === 'requester' && text.length > MAX_REQUESTER_TEXT) {
    throw new PlanError(field, `is longer than ${MAX_REQUESTER_TEXT} characters`);
  }
  return splitList(text);
}

/** Members of a list belong together by position. */
export interface Lists {
  readonly types: readonly AbiType[];
  readonly paths: readonly CompiledPath[];
  /** As long as the others, or a single one for all; absent: no multiplier. */
  readonly times: readonly (Decimal | undefined)[] | undefined;
  readonly exact: boolean;
}

/** The lists of an encoding, of which a requester may still have to give some. */
export type Pinned = Partial<Lists>;

/** What can be said before a request: the operator's own lists must fit each other. @throws PlanError */
export function checkPinned(pinned: Pinned, timesDelegated: boolean): void {
  checkLengths(pinned);
  const { types, times } = pinned;
  if (types === undefined || (times === undefined && !timesDelegated)) return;
  if (timesDelegated && !types.some(isInteger)) throw onlyIntegers(types[0]);
  for (const [index, type] of types.entries()) {
    if (times !== undefined && !isInteger(type) && multiplierAt(times, index) !== undefined) throw onlyIntegers(type);
  }
}

/** @throws PlanError where the lengths do not fit, or a type that is no integer would be multiplied. */
export function planOf(lists: Lists): Plan {
  checkLengths(lists);
  const { types, paths, times = [undefined], exact } = lists;
  return types.map((type, index) => {
    const path = paths[index];
    if (path === undefined) throw new PlanError('path', 'has too few members');
    const multiplier = multiplierAt(times, index);
    if (isInteger(type)) return { type, path, times: multiplier, exact };
    if (multiplier !== undefined && !isOne(multiplier)) throw onlyIntegers(type);
    return { type, path, times: undefined, exact };
  });
}

/** Says where numbers of an operator's encoding get cut, by field. */
export function cuts({ types = [], times }: Pinned, timesDelegated: boolean): readonly (readonly [Field, string])[] {
  const bare = types.find((type, i) => isInteger(type) && multiplierAt(times ?? [undefined], i) === undefined);
  const small = times?.find((factor) => factor !== undefined && isFraction(factor));
  const refuse = 'exact: true refuses what would be cut';
  return [
    ...(bare === undefined || timesDelegated
      ? []
      : [['type', `${bare.name} without times cuts fractions: 2064.25 is signed as 2064; ${refuse}`] as const]),
    ...(small === undefined
      ? []
      : [['times', `is below 1, which cuts digits: small values are signed as 0; ${refuse}`] as const]),
  ];
}

function checkLengths({ types, paths, times }: Pinned): void {
  if (types !== undefined && paths !== undefined && types.length !== paths.length) {
    throw new PlanError(
      'path',
      `lists ${counted(paths.length)}, and type lists ${counted(types.length)}: write one type for each path`,
    );
  }
  const count = types?.length ?? paths?.length;
  if (times === undefined || count === undefined || times.length === 1 || times.length === count) return;
  throw new PlanError(
    'times',
    `lists ${times.length} multipliers, and ${types === undefined ? 'path' : 'type'} lists ${counted(count)}: write one for all, or one for each`,
  );
}

function multiplierAt(times: readonly (Decimal | undefined)[], index: number): Decimal | undefined {
  return times.length === 1 ? times[0] : times[index];
}

function isInteger({ kind }: AbiType): boolean {
  return kind === 'int';
}

function onlyIntegers(type: AbiType | undefined): PlanError {
  return new PlanError('times', `only integers can be multiplied, not ${type?.name}`);
}

/** Whether it changes nothing: a requester who must send `_times` for a type that is no integer may send 1. */
function isOne({ negative, digits, exponent }: Decimal): boolean {
  return !negative && digits === '1' && exponent === 0;
}
