import { nearest } from '../../lib/suggest.ts';
import { type CompiledPath, compilePath, PathError, splitList } from '../shared/json-path/index.ts';
import { operatorPaths } from '../shared/json-path/operator-paths.ts';
import { type AbiType, TYPES } from './abi.ts';
import { type Field, PlanError } from './fault.ts';
import type { Lists } from './plan.ts';
import { parseTimes } from './times.ts';

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
