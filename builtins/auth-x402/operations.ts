import type { Log } from '../../plugins-sdk/index.ts';
import type { StateArea } from '../../plugins-sdk/state.ts';
import { paymentOperations } from '../shared/payment-operations.ts';
import type { PaymentRecords } from '../shared/payment-records.ts';
import { Payments } from '../shared/payments.ts';

/** What operators are told to do. */
const CURES = {
  redeemed:
    'its request is under way, or its process has died: find the requestId in the log; where it died, free it with --release --force',
  answered: 'an answer was signed for it: where that did not arrive, free it with --release',
  'given back': 'the client can use it again, while it is not too old',
  released: 'the client can use it again, while it is not too old',
  'used up': 'its requests failed: find out why, then free it with --release',
} as const;

/** What operators can ask of payments on chain. */
export function operationsOn(records: PaymentRecords, area: StateArea, log: Log) {
  return paymentOperations({
    ...{ type: 'x402', payments: new Payments(area), records, log, cures: CURES },
    refusal: ({ fate, requestId }, isForced) =>
      fate === 'redeemed' && !isForced
        ? `its request ${requestId} may be under way: wait for its end in the log, or use --force where its process has died`
        : undefined,
  });
}
