import type { AuthMethod, Endpoint, Exchange, Log, Services } from '../../plugins-sdk/index.ts';
import type { Measure } from '../../plugins-sdk/meters.ts';
import type { DebtLine } from '../../plugins-sdk/state/debts.ts';
import type { Terms } from './terms.ts';

/** What becomes of a payment once it is redeemed, and the line for it. */
const LINES = {
  redeemed: ['info', 'payment redeemed'],
  refunded: ['info', 'payment given back'],
  kept: ['warn', 'a payment was not given back once more'],
} as const;
type Fate = keyof typeof LINES;

/** Whose payment it is, and what it was for. */
interface Redeemed {
  readonly lost: DebtLine;
  readonly terms: Terms;
}

/** What is sold, and what is paid with: all of it stands in the config. */
function saleOf({ api, name }: Endpoint, { network, token }: Terms) {
  return { api, endpoint: name, network: `eip155:${network}`, asset: token };
}

/** Counts, and tells the operator, what became of payments. */
export class Reports {
  readonly proofs: Measure<'outcome'>;
  readonly #log: Log;
  readonly #payments: Measure<'api' | 'endpoint' | 'network' | 'asset' | 'outcome'>;

  constructor({ meters, log, endpoints }: Services, termsOf: (method: AuthMethod) => Terms) {
    this.#log = log;
    const help = 'Proofs of payment, by what became of them';
    const initial = ['redeemed', 'refused', 'limited', 'refunded', 'kept'].map((outcome) => ({ outcome }));
    this.proofs = meters.counter({ name: 'x402_proofs_total', help, labels: ['outcome'], initial });
    const sales = endpoints.flatMap((endpoint) =>
      endpoint.auth.flatMap((method) => (method.type === 'x402' ? [saleOf(endpoint, termsOf(method))] : [])),
    );
    this.#payments = meters.counter({
      name: 'x402_payments_total',
      help: 'Payments on chain that were redeemed, by what was sold and what it was paid with; and those of them that were given back',
      labels: ['api', 'endpoint', 'network', 'asset', 'outcome'],
      initial: sales.flatMap((sale) => Object.keys(LINES).map((outcome) => ({ ...sale, outcome }))),
    });
  }

  /** @param outcome of a payment that a request of this endpoint has redeemed. */
  payment(redeemed: Redeemed, { endpoint }: Exchange, outcome: Fate): void {
    const sale = saleOf(endpoint, redeemed.terms);
    this.proofs({ outcome }, 1);
    this.#payments({ ...sale, outcome }, 1);
    const { network, asset } = sale;
    const sold = { endpoint: `${sale.api}/${sale.endpoint}`, network, asset, amount: redeemed.terms.amount };
    const [level, message] = LINES[outcome];
    this.#log[level](message, { ...redeemed.lost.fields, ...sold });
  }
}
