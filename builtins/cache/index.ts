import { hash } from 'node:crypto';
import {
  addAnswerHeaders,
  answerKey,
  ContextKey,
  configKey,
  definePlugin,
  type Endpoint,
  type EndpointDraft,
  type Exchange,
  type Finding,
  keys,
  type Meters,
  millisecondsSchema,
  perEndpoint,
  type Services,
  type SignedResponse,
  StateKey,
  type Taps,
  Type,
  warning,
} from '../../plugins-sdk/index.ts';
import { type Cache, CacheEntries, type Found } from './entries.ts';
import { ReplicaAnswers } from './replicas.ts';
import { type Miss, SharedMisses } from './shared-misses.ts';
import { collapsed, hit, missed } from './status.ts';

const cacheKey = configKey(
  'shared',
  'cache',
  Type.Optional(
    Type.Object(
      { maxAge: millisecondsSchema('Milliseconds that an answer is kept') },
      { additionalProperties: false, description: 'Keeps signed answers, in sync mode; default none' },
    ),
  ),
);

const MODE = 'sync';

const kept = new StateKey<CacheEntries<SignedResponse>>('cache');

/** Keys of `server` that no answer depends on. Others may be a plugin's. */
const IRRELEVANT = {
  port: undefined,
  host: undefined,
  connections: undefined,
  drainDelay: undefined,
  cors: undefined,
  rateLimit: undefined,
  workers: undefined,
};

/** The signer and all of the config that an answer may depend on: answers that were cached under another are not used. */
function versions({ node, config }: Pick<Services, 'node' | 'config'>): (endpoint: Endpoint) => string {
  const { apis: _, server, settings, ...rest } = config;
  const none = { metrics: undefined, state: undefined };
  const common = JSON.stringify([node, rest, { ...Object(settings), ...none }, { ...Object(server), ...IRRELEVANT }]);
  return ({ own, shared }) => {
    const { endpoints: __, ...api } = shared;
    return hash('sha256', `${common}${JSON.stringify([own, api])}`, 'base64').slice(0, 22);
  };
}

/** What is unwise about the cache of an endpoint. */
function check(endpoint: EndpointDraft): Finding[] {
  const { path, mode } = endpoint;
  if (cacheKey.of(endpoint) === undefined) return [];
  if (mode !== MODE) return [warning(`${path}.cache`, `has no effect in ${mode} mode`)];
  if (keys.encoding.of(endpoint)?.path !== '*') return [];
  const message =
    'with a cache, every path that a requester chooses is an upstream call and an entry of its own: pin the path, or leave the cache out';
  return [warning(`${path}.encoding.path`, message)];
}

const MISSES =
  'Look-ups of answers that may be cached: hit, miss, shared with a request under way, or abandoned while waiting for one';

/** Counts look-ups, and says in the answer's headers what they came to. */
function lookupsIn(meters: Meters) {
  const initial = ['hit', 'miss', 'shared', 'abandoned'].map((outcome) => ({ outcome }));
  const lookups = meters.counter({ name: 'cache_lookups_total', help: MISSES, labels: ['outcome'], initial });
  return {
    hit: (exchange: Exchange, ttl: number) => {
      lookups({ outcome: 'hit' }, 1);
      addAnswerHeaders(exchange, hit(ttl));
    },
    miss: (exchange: Exchange, outcome: Miss) => {
      lookups({ outcome }, 1);
      addAnswerHeaders(exchange, outcome === 'shared' ? collapsed : missed);
    },
  };
}

/** Milliseconds for which an answer of another process is kept in this one: its own clock does not say when it ends. */
const BORROWED = 1000;

interface CacheOptions {
  readonly replicas: ReplicaAnswers | undefined;
  readonly entries: Cache<SignedResponse>;
  readonly meters: Meters;
  /** Milliseconds that an endpoint's answers are kept; 0 without a cache. */
  maxAge(endpoint: Endpoint): number;
  /** Begins the keys of an endpoint's answers. */
  version(endpoint: Endpoint): string;
}

function hooksOf({ entries, meters, maxAge, version, replicas }: CacheOptions): Taps {
  const key = new ContextKey<string>('cache key');
  const lookups = lookupsIn(meters);
  const keep = (text: string, answer: SignedResponse, ttl: number) =>
    entries.set(text, answer, { ttl, size: answer.json.length * 2 });
  const borrowed = (exchange: Exchange, { value, ttl }: Found<SignedResponse>, text: string) => {
    lookups.hit(exchange, ttl);
    keep(text, value, Math.min(ttl, BORROWED));
  };
  const misses = new SharedMisses({ hit: borrowed, miss: lookups.miss }, replicas);
  const answerFrom = (found: Found<SignedResponse> | undefined, text: string, exchange: Exchange) => {
    if (found === undefined) return misses.join(text, maxAge(exchange.endpoint), exchange);
    lookups.hit(exchange, found.ttl);
    return found.value;
  };
  return {
    lookup: (_, exchange) => {
      if (maxAge(exchange.endpoint) === 0) return undefined;
      const text = version(exchange.endpoint) + answerKey(exchange);
      key.set(exchange, text);
      const found = entries.get(text);
      return found instanceof Promise
        ? found.then((late) => answerFrom(late, text, exchange))
        : answerFrom(found, text, exchange);
    },
    // The first built-in at this stage, only to learn that the upstream has answered.
    encode: (_, exchange) => {
      misses.answered(exchange);
      return undefined;
    },
    store: async (answer, exchange) => {
      const text = key.get(exchange);
      // A client that leaves ends the work on its answer, which may then lack the proof that others want.
      if (text === undefined || exchange.abandoned) return;
      const ttl = maxAge(exchange.endpoint);
      await keep(text, answer, ttl);
      misses.store(answer, ttl, exchange);
    },
    settle: (outcome, exchange) => misses.settle(outcome, exchange),
  };
}

/** Signed answers, kept for `maxAge` and returned as they are, signature and timestamp included. */
export const cache = definePlugin({
  name: 'cache',
  budget: 'none',
  keys: [cacheKey],
  exposes: ['Cache-Status'],
  check: ({ endpoints }) => endpoints.flatMap(check),
  setup({ endpoints, config, states, meters, shared, node, now }) {
    const maxAgeOf = (endpoint: Endpoint) => (endpoint.mode === MODE ? (cacheKey.of(endpoint)?.maxAge ?? 0) : 0);
    if (endpoints.every((endpoint) => maxAgeOf(endpoint) === 0)) return {};
    const entries = states.keep(kept, '', () => new CacheEntries<SignedResponse>());
    meters.gauge({ name: 'cache_entries', help: 'Answers in the cache' }, () => entries.size);
    meters.gauge({ name: 'cache_bytes', help: 'Bytes in the cache' }, () => entries.bytes);
    const maxAge = perEndpoint(endpoints, maxAgeOf);
    const version = perEndpoint(endpoints, versions({ node, config }));
    const replicas = shared?.processes === 'many' ? new ReplicaAnswers(shared.area('cache'), now) : undefined;
    return { hooks: hooksOf({ entries, meters, maxAge, version, replicas }) };
  },
});
