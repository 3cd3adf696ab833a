/** Counts and logs what became of payments on chain. */
import type { Services } from '../../plugins-sdk/index.ts';
import { paymentReports } from '../shared/payment-reports.ts';
import { termsIn, tokenOf } from './terms.ts';

export type Reports = ReturnType<typeof reportsOf>;

export function reportsOf(services: Services) {
  return paymentReports(services, {
    all: ['x402_proofs_total', 'Proofs of payment, by what became of them'],
    sold: [
      'x402_payments_total',
      'Payments on chain that were redeemed, by what was sold and what it was paid with; and those of them that were given back',
    ],
    lines: {
      redeemed: ['info', 'payment redeemed'],
      refunded: ['info', 'payment given back'],
      kept: ['warn', 'a payment was not given back once more'],
    },
    others: ['refused', 'unavailable', 'limited'],
    tokensOf: (endpoint) => termsIn(endpoint).map(tokenOf),
  });
}
