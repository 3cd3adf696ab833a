import { errorForLog, Refusal } from '../../kernel/refusal.ts';
import type { Signed, SignRequest } from '../../kernel/values.ts';
import { recoverFromHash } from '../../lib/eth/eip191.ts';
import { type Hex, isSameHex } from '../../lib/eth/hex.ts';
import { answerStatement, type Statement } from '../../lib/eth/statements.ts';

const checked = new WeakSet<object>();

/**
 * Marks a result of `sign` as checked. A plugin may do so only if this process's key made the signatures, or if it recovered
 * the signer from each.
 */
export function markChecked(signed: Signed): Signed {
  checked.add(signed);
  return Object.freeze(signed);
}

/** Returns whether a result of `sign` is marked as checked. */
export const isChecked = (value: unknown): value is Signed => checked.has(Object(value));

/** Returns the name of a statement's signature in a list of signers' signatures. */
export const listedAs = (statement: string) => `${statement}Signature`;

/** Checks every signature of a result of `sign`, those of statements and of further signers included. @throws Refusal 502 */
export function requireSigned({ node, signature, statements = [], extra }: Signed, request: SignRequest): void {
  const answer = answerStatement(request);
  const asked = request.statements ?? [];
  requireBy(node, signature, answer);
  for (const [index, { typed }] of asked.entries()) requireBy(node, statements[index], typed as Statement);
  const { signatures } = extra ?? {};
  for (const { node: other, signature: own, ...further } of Array.isArray(signatures) ? signatures : []) {
    requireBy(other, own, answer);
    for (const [name, stated] of Object.entries(further)) {
      const found = asked.find((one) => listedAs(one.name) === name);
      if (found === undefined) throw refusal(`"${name}" is of no statement of this answer`);
      requireBy(other, stated, found.typed as Statement);
    }
  }
}

function requireBy(node: unknown, signature: unknown, statement: Statement): void {
  let by: Hex;
  try {
    by = recoverFromHash(statement.hash, signature as Hex);
  } catch (error) {
    throw refusal(errorForLog(error, 'message'));
  }
  if (!isSameHex(by, String(node))) throw refusal(`the signature is by ${by}, not by ${node}`);
}

function refusal(reason: string): Refusal {
  return new Refusal(502, 'Signing failed', { reason, failureClass: 'signer' });
}
