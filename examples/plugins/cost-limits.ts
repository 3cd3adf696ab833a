/**
 * Gives each client a budget, which refills over a window. An answer costs what its endpoint's `cost` says. A client is known by
 * the name that an auth method gives it (API keys with names, [`jwt-auth`](./jwt-auth.ts)), else by its address.
 *
 * An answer from the cache costs the same, and so does each value of a stream. With `settings.state` all processes share the
 * budgets; while the state cannot be read, nobody gets an answer. Without it each worker has an equal part of each budget.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./cost-limits.ts
 *       config: { max: 1000, window: 1h }
 * apis:
 *   - cost: 1 # the default; endpoints may have a value of their own
 * ```
 */
import {
  clientIp,
  clientKey,
  clientName,
  configKey,
  definePlugin,
  Type,
  tooManyRequests,
} from 'signed-data-proxy/plugins-sdk';
import { millisecondsSchema } from 'signed-data-proxy/plugins-sdk/config';
import { MemoryArea, StateKey } from 'signed-data-proxy/plugins-sdk/state';

const cost = configKey('apiOrEndpoint', 'cost', Type.Optional(Type.Integer({ minimum: 0, description: 'Per answer' })));
const kept = new StateKey<MemoryArea>('cost limits');

export const configSchema = Type.Object(
  { max: Type.Integer({ minimum: 1 }), window: millisecondsSchema('Milliseconds until a budget is full again') },
  { additionalProperties: false },
);

export default definePlugin({
  name: 'cost-limits',
  configSchema,
  keys: [cost],
  setup({ endpoints, stateEngine, states, workers }, { max, window }) {
    const parts = stateEngine === undefined ? (workers?.count ?? 1) : 1;
    const limit = { max: Math.ceil(max / parts), window };
    const dear = endpoints.find((endpoint) => (cost.of(endpoint) ?? 1) > limit.max);
    if (dear) throw new Error(`an answer of ${dear.api}/${dear.name} costs more than max`);
    const area = stateEngine?.area('cost-limits') ?? states.keep(kept, '', () => new MemoryArea());
    return {
      hooks: {
        answer: async (_, exchange) => {
          const client = clientName.get(exchange) ?? clientKey(clientIp(exchange));
          const price = cost.of(exchange.endpoint) ?? 1;
          // A bucket grants what it has. So look before taking, or a client with too few tokens would lose them.
          const { left } = await area.takeTokens(client, limit, 0);
          if (left >= price && (await area.takeTokens(client, limit, price)).granted === price) return undefined;
          throw tooManyRequests({ retryAfter: (Math.max(price - left, 1) * limit.window) / limit.max });
        },
      },
    };
  },
});
