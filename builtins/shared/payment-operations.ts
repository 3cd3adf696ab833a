/** What operators can ask of payments, whichever scheme they are of: list, show and release. */
import type { Log } from '../../plugins-sdk/index.ts';
import type { Operation, OperationResult } from '../../plugins-sdk/observe.ts';
import { isHeld, type Mark, MOST_REFUNDS, type Payment, type PaymentState } from './payment-mark.ts';
import type { Payments } from './payments.ts';

export interface PaymentOperationsOptions {
  /** The auth type of its endpoints. */
  readonly type: string;
  readonly payments: Payments;
  readonly log: Log;
  /** What an operator does about a payment that became this. */
  readonly cures: { readonly [S in PaymentState]?: string };
  /** Why a payment cannot be released, if so. */
  refusal(mark: Mark, isForced: boolean): string | undefined;
}

/** What operators can ask of the payments of one auth type. */
export function paymentOperations(options: PaymentOperationsOptions): Readonly<Record<string, Operation>> {
  const { payments, type, cures } = options;
  return {
    'payments list': async () =>
      (await payments.open()).map((mark) => ({ ...shown(type, mark), cure: cures[mark.state] ?? '' })),
    'payments show': async ({ id = '' }) =>
      (await payments.find(id)).map((mark) => {
        const { refunds, state } = mark;
        const given = refunds > 0 && { givenBack: `${refunds} of ${MOST_REFUNDS} times` };
        return { ...shown(type, mark), mark: useOf(mark), ...given, cure: cures[state] ?? '' };
      }),
    'payments release': async ({ id = '', payer, force }) => {
      const known = await payments.find(id);
      // Payers choose their nonces: one record may be a stranger's who has taken the nonce of another.
      const isOneOfSeveral = payer === undefined && known.length > 1;
      const results: OperationResult[] = [];
      for (const payment of known) {
        if (payer !== undefined && payment.payer.toLowerCase() !== payer.toLowerCase()) continue;
        const done = isOneOfSeveral
          ? Promise.reject(new Error(`several payments are known by ${id}: for this one add --payer ${payment.payer}`))
          : release(options, payment, force !== undefined);
        // What became of the others is told all the same.
        results.push(await done.catch((error) => ({ ...shown(type, payment), refused: errorText(error) })));
      }
      return results;
    },
  };
}

function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A mark in texts, what is not known of it left out. */
export function shown(type: string, mark: Mark & { readonly payment?: string }): OperationResult {
  const { payment, by, listed, refunds, before, since, validBefore, recipient, state, ...rest } = mark;
  const known = Object.entries(rest).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { type, ...Object.fromEntries(known), since: new Date(since).toISOString(), fate: state };
}

function useOf(mark: Mark): string {
  if (mark.by === undefined) return 'free: it can be used, unless it is too old';
  return isHeld(mark) ? 'held by a request' : 'used';
}

/** @throws Error that says why it stays as it is. */
async function release(
  { payments, log, type, refusal }: PaymentOperationsOptions,
  payment: Payment,
  isForced: boolean,
): Promise<OperationResult> {
  const why = refusal(payment, isForced);
  if (why !== undefined) throw new Error(why);
  if (payment.by === undefined) return { ...shown(type, payment), result: 'it is free already: nothing was changed' };
  const { payment: _, by: __, before: ___, ...rest } = payment;
  const released: Mark = { ...rest, state: 'released', refunds: 0 };
  if (!(await payments.replace(payment, released, 0))) throw new Error('the payment is used just now: try again');
  const { since, ...fields } = shown(type, payment);
  log.info('a payment was released by an operator', fields);
  return { ...shown(type, released), result: 'it can be used again' };
}
