import type { Log } from '../../plugins-sdk/index.ts';
import type { Operation, OperationResult } from '../../plugins-sdk/observe.ts';
import type { Fate, PaymentRecord, PaymentRecords } from './payment-records.ts';
import type { Payments, Standing } from './payments.ts';

export interface PaymentOperationsOptions {
  /** The auth type of its endpoints. */
  readonly type: string;
  readonly payments: Payments;
  readonly records: PaymentRecords;
  readonly log: Log;
  /** What an operator does about a payment that became this. */
  readonly cures: { readonly [F in Fate]?: string };
  /** Why a payment cannot be released, if so. */
  refusal(record: PaymentRecord, isForced: boolean): string | undefined;
}

/** What operators can ask of the payments of one auth type. */
export function paymentOperations(options: PaymentOperationsOptions): Readonly<Record<string, Operation>> {
  const { payments, records, type } = options;
  return {
    'payments list': async () =>
      (await records.unfinished()).map((record) => ({
        ...shown(type, record),
        cure: options.cures[record.fate] ?? '',
      })),
    'payments show': async ({ id = '' }) => {
      const found = await records.find(id);
      return Promise.all(
        found.map(async (record) => {
          const standing = await payments.standing(record.payment);
          return {
            ...shown(type, record),
            mark: markOf(standing),
            ...given(standing),
            ...todo(options, record, standing),
          };
        }),
      );
    },
    'payments release': async ({ id = '', payer, force }) => {
      const known = await records.find(id);
      // Payers choose their nonces: one record may be a stranger's who has taken the nonce of another.
      const isOneOfSeveral = payer === undefined && known.length > 1;
      const results: OperationResult[] = [];
      for (const record of known) {
        if (payer !== undefined && record.payer.toLowerCase() !== payer.toLowerCase()) continue;
        const done = isOneOfSeveral
          ? Promise.reject(new Error(`several payments are known by ${id}: for this one add --payer ${record.payer}`))
          : release(options, [id, record.payment], force !== undefined);
        // What became of the others is told all the same.
        results.push(await done.catch((error) => ({ ...shown(type, record), refused: errorText(error) })));
      }
      return results;
    },
  };
}

function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A record in texts, what is not known of it left out. */
export function shown(type: string, record: PaymentRecord): OperationResult {
  const { payment, token, since, validBefore, recipient, fate, ...rest } = record;
  const known = Object.entries(rest).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { type, ...Object.fromEntries(known), since: new Date(since).toISOString(), fate };
}

function markOf({ taken }: Standing): string {
  if (taken === undefined) return 'free: it can be used, unless it is too old';
  return taken === 'held' ? 'held by a request' : 'used';
}

function given({ refunds }: Standing): OperationResult {
  return refunds === undefined ? {} : { givenBack: `${refunds.split(' ')[0]} of 3 times` };
}

function todo({ cures }: PaymentOperationsOptions, { fate }: PaymentRecord, { taken }: Standing): OperationResult {
  const cure = taken === 'redeemed' || fate !== 'answered' ? cures[fate] : undefined;
  return cure === undefined ? {} : { cure };
}

const OTHER_USE =
  'a request of which nothing is recorded has used it: wait for its end in the log, or use --force where its process has died';

/** @throws Error that says why it stays as it is. */
async function release(
  { payments, records, log, type, refusal }: PaymentOperationsOptions,
  [id, payment]: readonly [id: string, payment: string],
  isForced: boolean,
): Promise<OperationResult> {
  // The mark is read first: whoever uses the payment meanwhile has another one.
  const standing = await payments.standing(payment);
  const record = (await records.find(id)).find((each) => each.payment === payment);
  if (record === undefined) throw new Error('the payment is used just now: try again');
  const why = refusal(record, isForced);
  if (why !== undefined) throw new Error(why);
  if (standing.taken === undefined)
    return { ...shown(type, record), result: 'it is free already: nothing was changed' };
  if (standing.taken === 'held') throw new Error('a request holds the payment: try again in 30 seconds');
  // The record may be of an earlier use, where the last one is not recorded.
  if (!isForced && standing.token !== record.token) throw new Error(OTHER_USE);
  if (!(await payments.forget(payment, standing))) throw new Error('the payment is used just now: try again');
  const released: PaymentRecord = { ...record, fate: 'released' };
  await records.note(released);
  const { since, ...fields } = shown(type, record);
  log.info('a payment was released by an operator', fields);
  return { ...shown(type, released), result: 'it can be used again' };
}
