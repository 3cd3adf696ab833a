import { isRecord } from '../../kernel/plain-json.ts';
import { recoverFromHash } from '../../lib/eth/eip191.ts';
import type { Hex } from '../../lib/eth/hex.ts';
import { type Statement, statementsOf } from '../../lib/eth/statements.ts';
import { privateNotes } from '../../lib/objects/private-notes.ts';
import { Refusal, type Signed, type SignRequest } from '../kernel.ts';

const known = privateNotes<true>();

/**
 * Says of a result of `sign` that its signatures need no check any more. The key of this process made them, or they were
 * recovered from. For the plugin that did so.
 */
export function checked(signed: Signed): Signed {
  return known.set(Object.freeze(signed), true);
}

export function isChecked(value: unknown): value is Signed {
  return known.get(value) !== undefined;
}

/**
 * Checks every signature that a result of `sign` shows, those of further signers and of the receipt included.
 * @param requestHash of what an endpoint with receipts was asked.
 * @throws Refusal 502
 */
export function requireSigned({ node, signature, beside }: Signed, request: SignRequest, requestHash?: Hex): void {
  const { answer, receipt } = statementsOf(request, requestHash);
  const { receipt: shown, signatures } = beside ?? {};
  requireBy(node, signature, answer);
  if (receipt !== undefined && isRecord(shown)) {
    if (shown.requestHash !== receipt.requestHash || shown.dataHash !== receipt.dataHash)
      throw refusal('the receipt is not of this request and this answer');
    requireBy(node, shown.signature, receipt.statement);
  }
  for (const entry of Array.isArray(signatures) ? signatures : []) {
    requireBy(entry.node, entry.signature, answer);
    if (entry.receiptSignature !== undefined) requireBy(entry.node, entry.receiptSignature, receipt?.statement);
  }
}

function requireBy(node: unknown, signature: unknown, statement: Statement | undefined): void {
  if (statement === undefined) throw refusal('the endpoint has no receipts');
  let by: Hex;
  try {
    by = recoverFromHash(statement.hash, signature as Hex);
  } catch (error) {
    throw refusal(error instanceof Error ? error.message : String(error));
  }
  if (by.toLowerCase() !== String(node).toLowerCase()) throw refusal(`the signature is by ${by}, not by ${node}`);
}

function refusal(reason: string): Refusal {
  return new Refusal(502, 'Signing failed', { reason, failureClass: 'signer' });
}
