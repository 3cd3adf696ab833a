/** Operators' commands on the payments of any scheme: list, show and release. */
import { errorText } from '../../lib/text.ts';
import type { Log } from '../../plugins-sdk/index.ts';
import type { Operation, OperationResult } from '../../plugins-sdk/observe.ts';
import { factsOf, isHeld, type Mark, MOST_REFUNDS, type Payment, type PaymentState } from './payment-mark.ts';
import type { Payments } from './payments.ts';

/** The payments that operators work on, and the rules of their scheme. */
export interface PaymentOperationsOptions {
  /** The auth type of the payments' endpoints. */
  readonly type: string;
  readonly payments: Payments;
  readonly log: Log;
  /** The advice to an operator for a payment in each state. */
  readonly cures: { readonly [S in PaymentState]?: string };
  /** Returns why a payment cannot be released; undefined if it can. */
  refusal(mark: Mark, isForced: boolean): string | undefined;
}

/** Makes the operations on the payments of one auth type. */
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
      // Payers choose their nonces, so one of the records may be a stranger's with the same nonce.
      const isOneOfSeveral = payer === undefined && known.length > 1;
      const results: OperationResult[] = [];
      for (const payment of known) {
        if (payer !== undefined && payment.payer.toLowerCase() !== payer.toLowerCase()) continue;
        const done = isOneOfSeveral
          ? Promise.reject(new Error(`several payments are known by ${id}: for this one add --payer ${payment.payer}`))
          : release(options, payment, force !== undefined);
        // The results of the other payments are still shown.
        results.push(await done.catch((error) => ({ ...shown(type, payment), refused: errorText(error) })));
      }
      return results;
    },
  };
}

/** Returns a mark as texts, without unknown facts. */
export function shown(type: string, mark: Mark & { readonly payment?: string }): OperationResult {
  const { since, state } = mark;
  const known = Object.entries(factsOf(mark)).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { type, ...Object.fromEntries(known), since: new Date(since).toISOString(), fate: state };
}

function useOf(mark: Mark): string {
  if (mark.by === undefined) return 'free: it can be used, unless it is too old';
  return isHeld(mark) ? 'held by a request' : 'used';
}

/** Releases a payment, so that it can be used again. @throws Error that says why it was not changed. */
async function release(
  { payments, log, type, refusal }: PaymentOperationsOptions,
  payment: Payment,
  isForced: boolean,
): Promise<OperationResult> {
  const why = refusal(payment, isForced);
  if (why !== undefined) throw new Error(why);
  if (payment.by === undefined) return { ...shown(type, payment), result: 'it is free already: nothing was changed' };
  const outcome = { state: 'released', refunds: 0, by: undefined } as const;
  if (!(await payments.replace(payment, outcome, 0))) throw new Error('the payment is used just now: try again');
  const { since, ...fields } = shown(type, payment);
  log.info('a payment was released by an operator', fields);
  return { ...shown(type, { ...payment, state: outcome.state }), result: 'it can be used again' };
}
