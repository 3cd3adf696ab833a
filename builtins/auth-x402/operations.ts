import type { Log } from '../../plugins-sdk/index.ts';
import { isHeld } from '../shared/payment-mark.ts';
import { paymentOperations } from '../shared/payment-operations.ts';
import type { Payments } from '../shared/payments.ts';

const UNDER_WAY =
  'its request is under way, or its process has died: find the requestId in the log; where it died, free it with --release --force';

/** What an operator can do about a payment, by its state. */
const CURES = {
  held: UNDER_WAY,
  redeemed: UNDER_WAY,
  answered: 'an answer was signed for it: where that did not arrive, free it with --release',
  left: 'its client left before an answer could be sent: where that was no fault of the client, free it with --release',
  'given back': 'the client can use it again, while it is not too old',
  released: 'the client can use it again, while it is not too old',
  'used up': 'its requests failed: find out why, then free it with --release',
} as const;

/** Makes the operators' commands for payments on chain. */
export function operationsOn(payments: Payments, log: Log) {
  return paymentOperations({
    ...{ type: 'x402', payments, log, cures: CURES },
    refusal: (mark, isForced) =>
      (isHeld(mark) || mark.state === 'redeemed') && !isForced
        ? `its request ${mark.requestId} may be under way: wait for its end in the log, or use --force where its process has died`
        : undefined,
  });
}
