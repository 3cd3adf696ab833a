import type { AuthMethod, Endpoint, Exchange, Log, Services } from '../../plugins-sdk/index.ts';
import type { Measure } from '../../plugins-sdk/observe.ts';
import { type MemoryArea, StateKey } from '../../plugins-sdk/state.ts';
import { type PaymentRecord, PaymentRecords } from '../shared/payment-records.ts';
import type { Ticket } from '../shared/payments.ts';
import type { Terms } from './terms.ts';

/** What becomes of a payment: the line for it, what is counted, and what operators are shown. */
const LINES = {
  redeemed: ['info', 'payment redeemed', 'redeemed'],
  answered: [undefined, '', 'answered'],
  refunded: ['info', 'payment given back', 'given back'],
  kept: ['warn', 'a payment was not given back once more', 'used up'],
} as const;
type PaymentOutcome = keyof typeof LINES;

const recorded = new StateKey<MemoryArea>('x402 payment records', { lasting: true });

/** By which an operator finds a payer who has lost something. */
export interface LostPayment {
  readonly requestId: string;
  readonly transaction: string;
  readonly payer: string;
}

/** A payment that a request has redeemed. */
export interface ReportedPayment {
  readonly record: Omit<PaymentRecord, 'fate'>;
  /** Ends once what became of it before is recorded. */
  recorded: Promise<void>;
}

/** What is sold, and what is paid with: all of it stands in the config. */
function saleOf({ api, name }: Endpoint, { network, token }: Terms) {
  return { api, endpoint: name, network: `eip155:${network}`, asset: token };
}

/** Counts, and tells the operator, what became of payments. */
export class Reports {
  readonly proofs: Measure<'outcome'>;
  readonly #log: Log;
  readonly #now: () => number;
  readonly records: PaymentRecords;
  readonly #payments: Measure<'api' | 'endpoint' | 'network' | 'asset' | 'outcome'>;

  constructor(services: Services, termsOf: (method: AuthMethod) => Terms) {
    const { meters, log, endpoints, now } = services;
    this.#log = log;
    this.#now = now;
    this.records = new PaymentRecords(services, 'x402', recorded);
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
      initial: sales.flatMap((sale) => ['redeemed', 'refunded', 'kept'].map((outcome) => ({ ...sale, outcome }))),
    });
  }

  /** A payment that this request redeems. */
  begin({ payment, token }: Ticket, lost: LostPayment, { endpoint }: Exchange, terms: Terms): ReportedPayment {
    const { network, asset } = saleOf(endpoint, terms);
    const sold = { endpoint: `${endpoint.api}/${endpoint.name}`, network, asset, amount: terms.amount };
    const record = { payment, token, since: this.#now(), ...lost, ...sold };
    const begun = { record, recorded: Promise.resolve() };
    void this.end(begun, endpoint, 'redeemed');
    return begun;
  }

  /** Tells what became of a payment. */
  async end(payment: ReportedPayment, { api, name }: Endpoint, outcome: PaymentOutcome): Promise<void> {
    const { record } = payment;
    const { requestId, transaction, payer, endpoint, network, asset, amount } = record;
    const [level, message, fate] = LINES[outcome];
    if (level !== undefined) {
      this.proofs({ outcome }, 1);
      this.#payments({ api, endpoint: name, network, asset, outcome }, 1);
      this.#log[level](message, { requestId, transaction, payer, endpoint, network, asset, amount });
    }
    payment.recorded = payment.recorded.then(() => this.records.note({ ...record, fate }));
    await payment.recorded;
  }
}
