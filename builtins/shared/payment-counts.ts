/** Counts what becomes of the payments of one scheme: in all, and by what was sold and what it was paid with. */
import type { Endpoint, Services } from '../../plugins-sdk/index.ts';
import type { About } from './payment-mark.ts';

/** What is paid with; it stands in the config. */
type Token = Pick<About, 'network' | 'asset'>;

interface Options {
  /** Name and help of the counter of all, and of that by what was sold. */
  readonly all: readonly [name: string, help: string];
  readonly sold: readonly [name: string, help: string];
  /** What may become of a payment that was found good, and what else of what clients send. */
  readonly outcomes: readonly string[];
  readonly others: readonly string[];
  tokensOf(endpoint: Endpoint): readonly Token[];
}

export type PaymentCounts = ReturnType<typeof paymentCounts>;

/** Alerts see the first event only beside a zero before it. */
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
