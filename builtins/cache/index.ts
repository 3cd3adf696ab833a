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
import { Flights, type Land } from './flights.ts';

const cacheKey = configKey(
  'shared',
  'cache',
  Type.Optional(Type.Object({ maxAge: MillisecondsSchema }, { additionalProperties: false })),
);

const MODE = 'sync';

/** Characters up to which a key is not worth a hash. */
const SHORT = 512;

/** What distinguishes two answers of one endpoint; hashed when it is long, because clients choose its length. */
function keyOf(endpoint: Endpoint, exchange: Exchange): string {
  const { values } = resolvedParameters.require(exchange);
  // Each by itself: a value may be nested as deep as canonical JSON allows. No value has an empty text.
  const texts = values.map((value) => (value === undefined ? '' : canonicalJson(value)));
  const text = JSON.stringify([endpoint.id, texts, encodingChoice.get(exchange) ?? []]);
  return text.length <= SHORT ? text : hash('sha256', text, 'base64');
}

function departureOf({ departure }: Exchange): Promise<undefined> {
  return new Promise((resolve) => {
    if (departure.aborted) resolve(undefined);
    else departure.addEventListener('abort', { handleEvent: () => resolve(undefined) });
  });
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
    const ttlOf = (endpoint: Endpoint) => (endpoint.mode === MODE ? (cacheKey.of(endpoint)?.maxAge ?? 0) : 0);
    if (endpoints.every((endpoint) => ttlOf(endpoint) === 0)) return {};
    const entries: Cache<Answer> = new CacheEntries();
    const ttl = perEndpoint(endpoints, ttlOf);
    const key = new Slot<string>('cache key');
    const flights = new Flights<Answer>();
    const leading = new Slot<Land<Answer>>('cache flight');
    /** Many clients that want what nobody has yet cost one upstream call. */
    const share = async (text: string, exchange: Exchange): Promise<Answer | undefined> => {
      const joined = await flights.join(text, departureOf(exchange));
      if (typeof joined !== 'function') return joined;
      leading.set(exchange, joined);
      return undefined;
    };
    return {
      hooks: {
        lookup: (_, exchange) => {
          if (ttl(exchange.endpoint) === 0) return undefined;
          const text = keyOf(exchange.endpoint, exchange);
          key.set(exchange, text);
          const kept = entries.get(text);
          if (kept instanceof Promise) return kept.then((found) => found ?? share(text, exchange));
          return kept ?? share(text, exchange);
        },
        store: async (answer, exchange) => {
          const text = key.get(exchange);
          // Whoever leaves early ends the work on the answer: it may lack a proof that others will want.
          if (text === undefined || exchange.abandoned) return;
          await entries.set(text, answer, { ttl: ttl(exchange.endpoint), size: answer.json.length * 2 });
        },
        settle: (outcome, exchange) =>
          leading.get(exchange)?.(outcome.kind === 'signed' && !exchange.abandoned ? outcome.answer : undefined),
      },
    };
  },
});
