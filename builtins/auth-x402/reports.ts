import type { AuthMethod, Endpoint, Exchange, Log, Services } from '../../plugins-sdk/index.ts';
import type { Measure } from '../../plugins-sdk/observe.ts';
import type { About } from '../shared/payment-mark.ts';
import type { Terms } from './terms.ts';

/** What becomes of a payment, and the line for it. */
const LINES = {
  redeemed: ['info', 'payment redeemed'],
  refunded: ['info', 'payment given back'],
  kept: ['warn', 'a payment was not given back once more'],
} as const;
type Outcome = keyof typeof LINES;

/** What is sold, and what is paid with: all of it stands in the config. */
function saleOf({ api, name }: Endpoint, { network, token }: Terms) {
  return { api, endpoint: name, network: `eip155:${network}`, asset: token };
}

/** By which an operator finds a payer who has lost something. */
export interface Payer {
  readonly requestId: string;
  readonly transaction: string;
  readonly payer: string;
}

/** What operators are told of a payment. @param now epoch milliseconds. */
export function aboutOf(payer: Payer, { endpoint }: Exchange, terms: Terms, now: number): About {
  const { network, asset } = saleOf(endpoint, terms);
  const sold = { endpoint: `${endpoint.api}/${endpoint.name}`, network, asset, amount: terms.amount };
  return { ...payer, ...sold, since: now };
}

/** Counts, and tells the operator, what became of payments. */
export class Reports {
  readonly proofs: Measure<'outcome'>;
  readonly #log: Log;
  readonly #payments: Measure<'api' | 'endpoint' | 'network' | 'asset' | 'outcome'>;

  constructor({ meters, log, endpoints }: Services, termsOf: (method: AuthMethod) => Terms) {
    this.#log = log;
    const help = 'Proofs of payment, by what became of them';
    const initial = ['redeemed', 'refused', 'unavailable', 'limited', 'refunded', 'kept'].map((outcome) => ({
      outcome,
    }));
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

  /** Tells what became of a payment. */
  tell({ since, ...about }: About, { api, name }: Endpoint, outcome: Outcome): void {
    const { network, asset } = about;
    const [level, message] = LINES[outcome];
    this.proofs({ outcome }, 1);
    this.#payments({ api, endpoint: name, network, asset, outcome }, 1);
    this.#log[level](message, { ...about });
  }
}
