/** Counts and logs what became of one scheme's payments: in all, and by endpoint and token. */
import type { Endpoint, Log, Services } from '../../plugins-sdk/index.ts';
import { type About, factsOf } from './payment-mark.ts';

/** The token of a payment; its values come from the config, so they are few. */
type Token = Pick<About, 'network' | 'asset'>;

interface Options<Outcome extends string> {
  /** Name and help of the counter of all payments, and of the counter by endpoint and token. */
  readonly all: readonly [name: string, help: string];
  readonly sold: readonly [name: string, help: string];
  /** The log level and line for each outcome of a valid payment. */
  readonly lines: Readonly<Record<Outcome, readonly [level: keyof Log, message: string]>>;
  /** Outcomes of anything else that clients send. */
  readonly others: readonly string[];
  tokensOf(endpoint: Endpoint): readonly Token[];
}

export type PaymentReports<Outcome extends string> = ReturnType<typeof paymentReports<Outcome>>;

/** Makes both counters. Each series begins at zero, or an alert on its increase would miss the first event. */
export function paymentReports<Outcome extends string>(
  { meters, endpoints, log }: Services,
  { all, sold, lines, others, tokensOf }: Options<Outcome>,
) {
  const outcomes = Object.keys(lines);
  const initial = [...outcomes, ...others].map((outcome) => ({ outcome }));
  const add = meters.counter({ name: all[0], help: all[1], labels: ['outcome'], initial });
  const labels = ['api', 'endpoint', 'network', 'asset', 'outcome'];
  const saleOf = ({ api, name: endpoint }: Endpoint, { network, asset }: Token) => ({ api, endpoint, network, asset });
  const sales = endpoints.flatMap((endpoint) => tokensOf(endpoint).map((token) => saleOf(endpoint, token)));
  const zeros = sales.flatMap((sale) => outcomes.map((outcome) => ({ ...sale, outcome })));
  const addSale = meters.counter({ name: sold[0], help: sold[1], labels, initial: zeros });
  return {
    count: (outcome: string) => add({ outcome }),
    /** Counts and logs what became of a valid payment. */
    tell: (about: About, endpoint: Endpoint, outcome: Outcome, more: Readonly<Record<string, unknown>> = {}) => {
      add({ outcome });
      addSale({ ...saleOf(endpoint, about), outcome });
      const [level, message] = lines[outcome];
      log[level](message, { ...factsOf(about), ...more });
    },
  };
}
