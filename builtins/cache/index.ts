import { hash } from 'node:crypto';
import {
  type Answer,
  canonicalJson,
  configKey,
  definePlugin,
  type Endpoint,
  type Exchange,
  encodingChoice,
  MillisecondsSchema,
  perEndpoint,
  resolvedParameters,
  Slot,
  Type,
  warning,
} from '../../plugins-sdk/index.ts';
import { type Cache, CacheEntries } from './entries.ts';

const cacheKey = configKey(
  'shared',
  'cache',
  Type.Optional(Type.Object({ maxAge: MillisecondsSchema }, { additionalProperties: false })),
);

const MODE = 'sync';

/** What distinguishes two answers of one endpoint; hashed, because clients choose its length. */
function keyOf(endpoint: Endpoint, exchange: Exchange): string {
  const { values } = resolvedParameters.require(exchange);
  // Each by itself: a value may be nested as deep as canonical JSON allows. No value has an empty text.
  const texts = values.map((value) => (value === undefined ? '' : canonicalJson(value)));
  const text = JSON.stringify([endpoint.id, texts, encodingChoice.get(exchange) ?? []]);
  return hash('sha256', text, 'base64');
}

/** Signed answers, kept for `maxAge` and returned as they are, signature and timestamp included. */
export const cache = definePlugin({
  name: 'cache',
  budget: 'none',
  keys: [cacheKey],
  check: ({ endpoints }) =>
    endpoints
      .filter((endpoint) => endpoint.mode !== MODE && cacheKey.of(endpoint) !== undefined)
      .map(({ path, mode }) => warning(`${path}.cache`, `has no effect in ${mode} mode`)),
  setup({ endpoints }) {
    const entries: Cache<Answer> = new CacheEntries();
    const ttl = perEndpoint(endpoints, (endpoint) =>
      endpoint.mode === MODE ? (cacheKey.of(endpoint)?.maxAge ?? 0) : 0,
    );
    const key = new Slot<string>('cache key');
    return {
      hooks: {
        lookup: (_, exchange) => {
          if (ttl(exchange.endpoint) === 0) return undefined;
          const text = keyOf(exchange.endpoint, exchange);
          key.set(exchange, text);
          return entries.get(text);
        },
        store: async (answer, exchange) => {
          const text = key.get(exchange);
          // Whoever leaves early ends the work on the answer: it may lack a proof that others will want.
          if (text === undefined || exchange.abandoned) return;
          await entries.set(text, answer, { ttl: ttl(exchange.endpoint), size: answer.json.length * 2 });
        },
      },
    };
  },
});
