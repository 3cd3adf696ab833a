/** Counts and logs what became of payments on chain. */
import type { AuthMethod, Endpoint, Exchange, Services } from '../../plugins-sdk/index.ts';
import { paymentCounts } from '../shared/payment-counts.ts';
import type { About } from '../shared/payment-mark.ts';
import type { Terms } from './terms.ts';

/** The log level and line for each outcome of a payment. */
const LINES = {
  redeemed: ['info', 'payment redeemed'],
  refunded: ['info', 'payment given back'],
  kept: ['warn', 'a payment was not given back once more'],
} as const;

const tokenOf = ({ network, token }: Terms) => ({ network: `eip155:${network}`, asset: token });

/** Collects what operators need to find a payment and its request. @param now epoch milliseconds. */
export function aboutOf(
  facts: Required<Pick<About, 'transaction' | 'payer'>>,
  { requestId, endpoint: { api, name } }: Exchange,
  terms: Terms,
  now: number,
): About {
  return { requestId, ...facts, endpoint: `${api}/${name}`, ...tokenOf(terms), amount: terms.amount, since: now };
}

export type Reports = ReturnType<typeof reportsOf>;

export function reportsOf(services: Services, termsOf: (method: AuthMethod) => Terms) {
  const counts = paymentCounts(services, {
    all: ['x402_proofs_total', 'Proofs of payment, by what became of them'],
    sold: [
      'x402_payments_total',
      'Payments on chain that were redeemed, by what was sold and what it was paid with; and those of them that were given back',
    ],
    outcomes: Object.keys(LINES),
    others: ['refused', 'unavailable', 'limited'],
    tokensOf: ({ auth }) => auth.filter(({ type }) => type === 'x402').map((method) => tokenOf(termsOf(method))),
  });
  /** Counts and logs what became of a payment. */
  const tell = ({ since, ...about }: About, endpoint: Endpoint, outcome: keyof typeof LINES): void => {
    const [level, message] = LINES[outcome];
    counts.addSold(endpoint, about, outcome);
    services.log[level](message, { ...about });
  };
  return { counts, tell };
}
