/** Operators' commands on the payments of any scheme: list, show and release. */
import { isSameHex } from '../../lib/eth/hex.ts';
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
  const { payments, type, cures, refusal } = options;
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
      const meant = known.filter((one) => payer === undefined || isSameHex(one.payer, payer));
      // Payers choose their nonces, so one of the records may be a stranger's with the same nonce.
      const isOneOfSeveral = payer === undefined && known.length > 1;
      const results = meant.map(async (payment): Promise<OperationResult> => {
        const several = `several payments are known by ${id}: for this one add --payer ${payment.payer}`;
        const refused = isOneOfSeveral ? several : refusal(payment, force !== undefined);
        if (refused !== undefined) return { ...shown(type, payment), refused };
        // The results of the other payments are still shown.
        const done = await release(options, payment).catch((error: unknown) => ({ refused: errorText(error) }));
        return { ...shown(type, payment), ...done };
      });
      return Promise.all(results);
    },
  };
}

/** Returns a mark as texts, without unknown facts. */
export function shown(type: string, mark: Mark & { readonly payment?: string }): OperationResult {
  const { since, state } = mark;
  return { type, ...factsOf(mark), since: new Date(since).toISOString(), fate: state };
}

function useOf(mark: Mark): string {
  if (mark.by === undefined) return 'free: it can be used, unless it is too old';
  return isHeld(mark) ? 'held by a request' : 'used';
}

/** Releases a payment, so that it can be used again. @returns what came of it, or why it was not changed. */
async function release({ payments, log, type }: PaymentOperationsOptions, payment: Payment): Promise<OperationResult> {
  if (payment.by === undefined) return { result: 'it is free already: nothing was changed' };
  const outcome = { state: 'released', refunds: 0, by: undefined } as const;
  const isReplaced = await payments.replace(payment, outcome, 0);
  if (!isReplaced) return { refused: 'the payment is used just now: try again' };
  const { since, ...fields } = shown(type, payment);
  log.info('a payment was released by an operator', fields);
  return { fate: outcome.state, result: 'it can be used again' };
}
