/** Counts the outcomes of one scheme's payments: in all, and by endpoint and token. */
import type { Endpoint, Services } from '../../plugins-sdk/index.ts';
import type { About } from './payment-mark.ts';

/** The token of a payment; its values come from the config, so they are few. */
type Token = Pick<About, 'network' | 'asset'>;

interface Options {
  /** Name and help of the counter of all payments, and of the counter by endpoint and token. */
  readonly all: readonly [name: string, help: string];
  readonly sold: readonly [name: string, help: string];
  /** Outcomes of valid payments, and outcomes of anything else that clients send. */
  readonly outcomes: readonly string[];
  readonly others: readonly string[];
  tokensOf(endpoint: Endpoint): readonly Token[];
}

export type PaymentCounts = ReturnType<typeof paymentCounts>;

/** Makes both counters. Each series begins at zero, or an alert on its increase would miss the first event. */
export function paymentCounts({ meters, endpoints }: Services, { all, sold, outcomes, others, tokensOf }: Options) {
  const initial = [...outcomes, ...others].map((outcome) => ({ outcome }));
  const add = meters.counter({ name: all[0], help: all[1], labels: ['outcome'], initial });
  const labels = ['api', 'endpoint', 'network', 'asset', 'outcome'];
  const saleOf = ({ api, name: endpoint }: Endpoint, { network, asset }: Token) => ({ api, endpoint, network, asset });
  const sales = endpoints.flatMap((endpoint) => tokensOf(endpoint).map((token) => saleOf(endpoint, token)));
  const zeros = sales.flatMap((sale) => outcomes.map((outcome) => ({ ...sale, outcome })));
  const addSale = meters.counter({ name: sold[0], help: sold[1], labels, initial: zeros });
  return {
    add: (outcome: string) => add({ outcome }),
    addSold: (endpoint: Endpoint, token: Token, outcome: string) => {
      add({ outcome });
      addSale({ ...saleOf(endpoint, token), outcome });
    },
  };
}
