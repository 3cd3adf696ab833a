import { hash } from 'node:crypto';
import {
  closedObject,
  DURATION,
  type EndpointDraft,
  type Finding,
  keys,
  millisecondsSchema,
  optionalKey,
  warning,
} from '../../plugins-sdk/config.ts';
import {
  addAnswerHeaders,
  ContextKey,
  definePlugin,
  type Endpoint,
  type Exchange,
  perEndpoint,
  type Question,
  type Services,
  type SignedResponse,
  type Taps,
  Type,
} from '../../plugins-sdk/index.ts';
import type { Meters } from '../../plugins-sdk/observe.ts';
import { type Flight, StateKey } from '../../plugins-sdk/state.ts';
import { isOutage } from '../shared/upstream-failure.ts';
import { CacheEntries } from './entries.ts';
import { describeCache } from './openapi.ts';
import { longestWaitOf, ReplicaAnswers } from './replicas.ts';
import { collapsed, hit, missed, stale } from './status.ts';

const cacheKey = optionalKey(
  'apiOrEndpoint',
  'cache',
  closedObject(
    {
      // No timer waits for its end, so that any time will do.
      maxAge: Type.Integer({ minimum: 1, [DURATION]: 100, description: 'Milliseconds that an answer is kept' }),
      staleIfError: Type.Optional(
        millisecondsSchema('Milliseconds after that for which it stands in where the upstream fails; default none'),
      ),
    },
    'Keeps signed answers, in sync mode; default none',
  ),
);

const MODE = 'sync';

/** What the look-up came to, for the request's line in the log. */
const lookup = new ContextKey<'hit' | 'miss' | 'shared' | 'stale'>('cache', { logged: true });

const kept = new StateKey<CacheEntries<SignedResponse>>('cache');

/** The signer and all of the config that an answer may depend on: answers that were cached under another are not used. */
function versions({ node, answerConfig }: Pick<Services, 'node' | 'answerConfig'>): (endpoint: Endpoint) => string {
  const { apis: _, ...rest } = answerConfig;
  const common = JSON.stringify([node, rest]);
  return ({ block, apiBlock }) => {
    const { endpoints: __, ...api } = apiBlock;
    return hash('sha256', `${common}${JSON.stringify([block, api])}`, 'base64').slice(0, 22);
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

const LOOKUPS =
  'Look-ups of answers that may be cached: hit, miss, shared with a request under way; stale: an old one, as there was no new one';

/** Counts look-ups, and says in the answer's headers what they came to. */
function lookupsIn(meters: Meters) {
  const initial = ['hit', 'miss', 'shared', 'stale'].map((outcome) => ({ outcome }));
  const lookups = meters.counter({ name: 'cache_lookups_total', help: LOOKUPS, labels: ['outcome'], initial });
  return {
    hit: (exchange: Exchange, ttl: number) => {
      lookups({ outcome: 'hit' }, 1);
      lookup.set(exchange, 'hit');
      addAnswerHeaders(exchange, hit(ttl));
    },
    stale: (exchange: Exchange, ttl: number) => {
      lookups({ outcome: 'stale' }, 1);
      lookup.set(exchange, 'stale');
      addAnswerHeaders(exchange, stale(Math.max(0, -ttl)));
    },
    miss: (exchange: Exchange, outcome: 'miss' | 'shared') => {
      lookups({ outcome }, 1);
      lookup.set(exchange, outcome);
      addAnswerHeaders(exchange, outcome === 'shared' ? collapsed : missed);
    },
  };
}

/** Milliseconds for which this process holds an answer of another one: only the engine knows for certain when it ends. */
const BORROWED_MS = 1000;
/** Milliseconds of the budget beyond the longest wait for other processes. */
const MARGIN_MS = 1000;

interface CacheOptions {
  readonly replicas: ReplicaAnswers | undefined;
  readonly entries: CacheEntries<SignedResponse>;
  readonly meters: Meters;
  /** Milliseconds that an endpoint's answers are kept; 0 without a cache. */
  maxAge(endpoint: Endpoint): number;
  /** Milliseconds for which they stand in after that where there is no new one. */
  staleIfError(endpoint: Endpoint): number;
  /** Begins the keys of an endpoint's answers. */
  version(endpoint: Endpoint): string;
}

type Work = Flight<Question, SignedResponse>;

/** A look-up that found nothing in this process. */
interface Miss {
  readonly key: string;
  readonly question: Question;
  readonly exchange: Exchange;
}

type Lookups = ReturnType<typeof lookupsIn>;

/** Gets answers that this process lacks: from another process, or from the upstream. */
function fetching({ entries, maxAge, staleIfError, replicas }: CacheOptions, lookups: Lookups) {
  const keep = ({ key, exchange }: Miss, answer: SignedResponse, ttl: number, goodFor = ttl) => {
    const staleFor = staleIfError(exchange.endpoint);
    entries.set(key, answer, { ttl, goodFor, staleFor, size: answer.json.length * 2 });
  };
  /** @returns whether it may be kept: those who left have ended the work on it, so that it may lack the proof that others want. */
  const make = async (miss: Miss, flight: Work) => {
    const { exchange } = miss;
    lookups.miss(exchange, 'miss');
    const answer = await flight.next();
    const isWhole = !flight.exchange.abandoned;
    if (isWhole) keep(miss, answer, maxAge(exchange.endpoint));
    return { answer, isWhole };
  };
  const find = async (others: ReplicaAnswers, miss: Miss, flight: Work) => {
    const { key, exchange } = miss;
    const ttl = maxAge(exchange.endpoint);
    const { found, lock } = await others.search(key, ttl, miss.question, flight.exchange);
    if (found !== undefined) {
      lookups.hit(exchange, found.ttl);
      keep(miss, found.value, found.ttl, BORROWED_MS);
      return found.value;
    }
    let isStored = false;
    try {
      const { answer, isWhole } = await make(miss, flight);
      if (isWhole) lock?.store(answer, ttl);
      isStored = isWhole;
      return answer;
    } finally {
      // What is stored lets go of the lock by itself.
      if (!isStored) lock?.release();
    }
  };
  return async (miss: Miss, flight: Work): Promise<SignedResponse> =>
    replicas === undefined ? (await make(miss, flight)).answer : find(replicas, miss, flight);
}

function answering(options: CacheOptions): NonNullable<Taps['answer']> {
  const { entries, meters, maxAge, staleIfError, version } = options;
  const lookups = lookupsIn(meters);
  const fetchAnswer = fetching(options, lookups);
  return (question, exchange, { share }) => {
    if (maxAge(exchange.endpoint) === 0) return undefined;
    const key = version(exchange.endpoint) + question.key;
    const found = entries.get(key);
    if (found?.isGood) {
      lookups.hit(exchange, found.ttl);
      return found.value;
    }
    const miss = { key, question, exchange };
    let isFirst = false;
    const answer = share(key, (flight) => {
      isFirst = true;
      return fetchAnswer(miss, flight);
    });
    // The work has begun by now, if it is this request's.
    if (!isFirst) lookups.miss(exchange, 'shared');
    if (staleIfError(exchange.endpoint) === 0) return answer;
    return answer.catch((error: unknown) => {
      // Another one may have been kept meanwhile.
      const old = isOutage(error) ? entries.get(key) : undefined;
      if (old === undefined) throw error;
      lookups.stale(exchange, old.ttl);
      return old.value;
    });
  };
}

/** Signed answers, kept for `maxAge` and returned as they are, signature and timestamp included. */
export const cache = definePlugin({
  name: 'cache',
  // It waits for the calls of other processes, and gives up by itself before the budget ends.
  budget: (_, endpoints) => Math.max(0, ...endpoints.map(longestWaitOf)) + MARGIN_MS,
  keys: [cacheKey],
  exposes: ['Cache-Status'],
  openapi: () => describeCache((endpoint) => (endpoint.mode === MODE ? cacheKey.of(endpoint) : undefined)),
  check: ({ endpoints }) => endpoints.flatMap(check),
  setup({ endpoints, answerConfig, states, meters, stateEngine, node, now }) {
    // Engines take no larger number.
    const maxAgeOf = (endpoint: Endpoint) =>
      endpoint.mode === MODE ? Math.min(cacheKey.of(endpoint)?.maxAge ?? 0, Number.MAX_SAFE_INTEGER) : 0;
    if (endpoints.every((endpoint) => maxAgeOf(endpoint) === 0)) return {};
    const entries = states.keep(kept, '', () => new CacheEntries<SignedResponse>({ now }));
    meters.gauge({ name: 'cache_entries', help: 'Answers in the cache' }, () => entries.size);
    meters.gauge({ name: 'cache_bytes', help: 'Bytes in the cache' }, () => entries.bytes);
    const maxAge = perEndpoint(endpoints, maxAgeOf);
    const staleIfError = perEndpoint(endpoints, (endpoint) => cacheKey.of(endpoint)?.staleIfError ?? 0);
    const version = perEndpoint(endpoints, versions({ node, answerConfig }));
    const replicas =
      stateEngine?.processes === 'many' ? new ReplicaAnswers(stateEngine.area('cache'), { node, now }) : undefined;
    return { hooks: { answer: answering({ entries, meters, maxAge, staleIfError, version, replicas }) } };
  },
});
