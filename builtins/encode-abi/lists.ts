import { nearest } from '../../lib/suggest.ts';
import { type Decimal, parseDecimal } from '../shared/decimal.ts';
import { type CompiledPath, compilePath, PathError, splitList } from '../shared/json-path/index.ts';
import { operatorPaths } from '../shared/json-path/operator-paths.ts';
import { type AbiType, TYPES } from './abi.ts';
import type { Combine } from './combine.ts';

/** The three members of an encoding. */
export type Field = 'type' | 'path' | 'times';

/** A fault of an encoding, and the member that has it. */
export class PlanError extends Error {
  override readonly name: string = 'PlanError';
  readonly field: Field;

  constructor(field: Field, message: string, options?: ErrorOptions) {
    super(message, options);
    this.field = field;
  }
}

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

/** Types that a requester may choose. */
export const REQUESTER_TYPES = new Set(['int256', 'uint256', 'bool', 'bytes32', 'address', 'string', 'bytes']);
export const MAX_REQUESTER_TEXT = 1024;

/** The author of a list. An operator's paths may hold the declared parameters. */
export type Origin = 'requester' | { readonly declared: readonly string[] };

/** Parses a member of an encoding as a list. An empty multiplier means none. @throws PlanError */
export function readList(field: Field, text: string, origin: Origin): Lists {
  if (origin === 'requester' && text.length > MAX_REQUESTER_TEXT)
    throw new PlanError(field, `is longer than ${MAX_REQUESTER_TEXT} characters`);
  if (field === 'path') return { paths: pathsOf(text, origin) };
  const members = splitList(text);
  if (field === 'type') return { types: members.map((name) => typeOf(name, origin)) };
  return { times: members.map((times) => (times === '' ? undefined : parseTimes(times))) };
}

function pathsOf(text: string, origin: Origin): readonly CompiledPath[] {
  try {
    if (origin !== 'requester') return operatorPaths(text, origin.declared);
    return splitList(text).map((path) => compilePath(path, 'requester'));
  } catch (cause) {
    if (!(cause instanceof PathError)) throw cause;
    throw new PlanError('path', cause.message, { cause });
  }
}

function typeOf(name: string, origin: Origin): AbiType {
  const type = origin !== 'requester' || REQUESTER_TYPES.has(name) ? TYPES.get(name) : undefined;
  if (type !== undefined) return type;
  // A client's text stays out of the log.
  if (origin === 'requester') throw new PlanError('type', 'a member is no type that clients may choose');
  throw new PlanError('type', `"${name}" is no type${suggestion(name)}`);
}

/** Type names of other languages, and the closest ABI types. */
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
  const meant = Object.hasOwn(MEANT, written) ? MEANT[written] : nearest(written, [...TYPES.keys()]);
  if (meant === undefined) return ': write one of the elementary ABI types, such as int256, bool, bytes32 or string';
  return `, did you mean "${meant}"?${FRACTIONS.test(written) ? ' Fractions are kept with times, such as 1e18' : ''}`;
}

const MAX_TIMES_TEXT = 100;
const MAX_TIMES_EXPONENT = 77;

/**
 * Reads a multiplier such as `1e18`, `100`, `-0.5` or `1e-6`.
 *
 * @throws PlanError when the text is no decimal number, is longer than 100 characters, exceeds 10^77 in magnitude, or has
 * a last digit below 10^-77.
 */
export function parseTimes(text: string): Decimal {
  const fault = (message: string) => new PlanError('times', message);
  if (text.length > MAX_TIMES_TEXT) throw fault(`times is longer than ${MAX_TIMES_TEXT} characters`);
  const times = parseDecimal(text);
  if (times === undefined) throw fault('times is not a decimal number such as 100, 0.5 or 1e18');
  const magnitude = times.digits.length + times.exponent - 1;
  const isTooLarge = magnitude > MAX_TIMES_EXPONENT || (magnitude === MAX_TIMES_EXPONENT && times.digits !== '1');
  if (isTooLarge) throw fault(`times is larger than 1e${MAX_TIMES_EXPONENT}`);
  if (times.exponent < -MAX_TIMES_EXPONENT) throw fault(`times is finer than 1e-${MAX_TIMES_EXPONENT}`);
  return times;
}
