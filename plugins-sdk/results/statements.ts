import type { AttachedStatement } from '../../kernel/values.ts';
import { keccak256 } from '../../lib/eth/hex.ts';
import { isString } from '../../lib/json/value.ts';
import { ADDED } from './answers.ts';
import { ensure, jsonObject, membersOf, RESERVED } from './members.ts';

const STATEMENT = ['name', 'shown', 'typed'];

/**
 * Reads the statements that a plugin returned: those before it, and its own. Its own must be EIP-712 typed data, whose preimage
 * can be neither a message nor a transaction.
 * @throws WrongShape
 */
export function statementsIn(value: unknown, [before]: readonly unknown[]): readonly AttachedStatement[] {
  ensure(Array.isArray(value), 'it must be a list of statements');
  const known = before as readonly AttachedStatement[];
  // A plugin's array may have its own `map`.
  const statements = Array.from(value, (one) => (known.includes(one) ? (one as AttachedStatement) : statementOf(one)));
  const isKept = known.every((one) => statements.includes(one));
  ensure(isKept, 'the statements that were there before must stay');
  const names = new Set(statements.map(({ name }) => name));
  ensure(names.size === statements.length, 'two statements have one name');
  return Object.freeze(statements);
}

/** Names that no statement can have. The name `receipt` is free for receipts. */
const UNSTATED: ReadonlySet<string> = new Set([...RESERVED, ...ADDED, 'data', 'rawData', 'signatures']);

function statementOf(value: unknown): AttachedStatement {
  const { name, shown, typed } = membersOf(value, STATEMENT, 'a statement');
  ensure(isString(name) && name !== '' && !UNSTATED.has(name), 'a statement needs a name that no other member has');
  const { preimage, data } = membersOf(typed, ['preimage', 'data'], 'typed');
  ensure(
    typeof preimage === 'function' && typeof data === 'function',
    'a statement has the functions preimage and data',
  );
  const bytes = Uint8Array.from(preimage.call(typed));
  ensure(bytes.length === 66 && bytes[0] === 0x19 && bytes[1] === 1, 'a statement is EIP-712 typed data');
  const json = jsonObject(data.call(typed), 'data');
  const statement = { kind: 'typed', hash: keccak256(bytes), preimage: () => bytes, data: () => json } as const;
  return Object.freeze({ name, shown: jsonObject(shown, 'shown'), typed: statement }) as AttachedStatement;
}
