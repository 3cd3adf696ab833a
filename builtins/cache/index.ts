import { hash } from 'node:crypto';
import { type EndpointDraft, type Finding, keys, warning } from '../../plugins-sdk/config.ts';
import {
  addAnswerHeaders,
  ContextKey,
  definePlugin,
  type Endpoint,
  isRefusal,
  type Log,
  perEndpoint,
  type Question,
  type Services,
  type SignedResponse,
  type Taps,
} from '../../plugins-sdk/index.ts';
import type { Meters } from '../../plugins-sdk/observe.ts';
import { type Flight, StateKey } from '../../plugins-sdk/state.ts';
import { CacheEntries } from '../shared/cache-entries.ts';
import { isOutage } from '../shared/upstream.ts';
import { openApiPart } from './openapi.ts';
import { cacheKey, MODE, policyOf } from './policy.ts';
import { longestWaitOf, type Search, searching } from './replicas.ts';
import { collapsed, hit, missed, stale } from './status.ts';

type Outcome = 'hit' | 'miss' | 'shared' | 'stale';

/** The outcome of the lookup, for the request's log line. */
const lookup = new ContextKey<Outcome>('cache', { logged: true });

const kept = new StateKey<CacheEntries<SignedResponse>>('cache');

/** Makes the function that returns the cache policy of an endpoint. Its times are milliseconds; `maxAge` is 0 without a cache. */
function termsIn({ node, answerConfig }: Pick<Services, 'node' | 'answerConfig'>) {
  const { apis: _, ...rest } = answerConfig;
  const common = JSON.stringify([node, rest]);
  return (endpoint: Endpoint) => {
    const { endpoints: __, ...api } = endpoint.apiBlock;
    // Begins the cache keys: a hash of the signer and of all config that an answer may depend on.
    const version = hash('sha256', `${common}${JSON.stringify([endpoint.block, api])}`, 'base64').slice(0, 22);
    const { maxAge = 0, staleIfError = 0, staleWhileRevalidate = 0 } = policyOf(endpoint) ?? {};
    // Engines take no larger number.
    return { maxAge: Math.min(maxAge, Number.MAX_SAFE_INTEGER), staleIfError, staleWhileRevalidate, version };
  };
}

type Terms = ReturnType<ReturnType<typeof termsIn>>;

/** Warns of a cache without effect, and of one that requesters can fill. */
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
  'Look-ups of answers that may be cached: hit, miss, shared with a request under way; stale: an old one, as there was no new one yet';

/** Makes the counter of lookups. */
function lookupsIn(meters: Meters) {
  const initial = ['hit', 'miss', 'shared', 'stale'].map((outcome) => ({ outcome }));
  return meters.counter({ name: 'cache_lookups_total', help: LOOKUPS, labels: ['outcome'], initial });
}

/** Notes the outcome of a lookup, and the headers that tell of it, in place of an earlier one. */
type Note = (outcome: Outcome, headers: Readonly<Record<string, string>>) => void;

/** Milliseconds for which this process keeps an answer of another one: only the engine knows exactly when it expires. */
const BORROWED_MS = 1000;
/** Milliseconds of the budget beyond the longest wait for other processes: five commands of an engine that is slow. */
const MARGIN_MS = 4000;

interface Cache {
  readonly entries: CacheEntries<SignedResponse>;
  /** Searches all processes that share an engine. */
  readonly search: ReturnType<typeof searching> | undefined;
  readonly count: ReturnType<typeof lookupsIn>;
}

/** A lookup that found nothing in this process. */
interface Miss {
  readonly key: string;
  readonly terms: Terms;
  readonly question: Question;
}

/** Makes the function that gets an answer which this process lacks: from another process, or from the upstream. */
function fetching({ entries, search }: Cache) {
  const keep = ({ key, terms }: Miss, answer: SignedResponse, ttl: number, goodFor = ttl) => {
    const staleFor = Math.max(terms.staleIfError, terms.staleWhileRevalidate);
    entries.set(key, answer, { ttl, goodFor, staleFor, size: answer.json.length * 2 });
  };
  return async (miss: Miss, flight: Flight<Question, SignedResponse>, note?: Note): Promise<SignedResponse> => {
    const { key, terms, question } = miss;
    const searched = await search?.(key, terms.maxAge, question, flight.exchange);
    const { found, unlock }: Search = searched ?? {};
    if (found !== undefined) {
      note?.('hit', hit(found.ttl));
      keep(miss, found.value, found.ttl, BORROWED_MS);
      return found.value;
    }
    note?.('miss', missed);
    let kept: SignedResponse | undefined;
    try {
      const answer = await flight.next();
      // If all clients have left, which ends the work on it, the answer may lack its proof.
      if (!flight.exchange.abandoned) {
        kept = answer;
        keep(miss, answer, terms.maxAge);
      }
      return answer;
    } finally {
      unlock?.(kept);
    }
  };
}

/** Makes the function that renews an answer while requests get the old one: one renewal at a time per key. */
function renewing(log: Log) {
  const underWay = new Set<string>();
  return (key: string, { api, name }: Endpoint, make: () => Promise<unknown>) => {
    if (underWay.has(key)) return;
    underWay.add(key);
    make()
      .catch((error: unknown) => {
        const { reason: detail } = isRefusal(error) ? error : {};
        log.info('a cached answer could not be renewed', { endpoint: `${api}/${name}`, detail });
      })
      .finally(() => underWay.delete(key));
  };
}

function answering(held: Cache, termsOf: (endpoint: Endpoint) => Terms, log: Log): NonNullable<Taps['answer']> {
  const { entries, count } = held;
  const fetchAnswer = fetching(held);
  const renew = renewing(log);
  return (question, exchange, { share }) => {
    const terms = termsOf(exchange.endpoint);
    if (terms.maxAge === 0) return undefined;
    const note: Note = (outcome, headers) => {
      lookup.set(exchange, outcome);
      addAnswerHeaders(exchange, headers);
    };
    const key = terms.version + question.key;
    const found = entries.get(key);
    if (found?.isGood) {
      count({ outcome: 'hit' });
      note('hit', hit(found.ttl));
      return found.value;
    }
    const miss = { key, terms, question };
    if (found !== undefined && found.ttl <= 0 && -found.ttl < terms.staleWhileRevalidate) {
      renew(key, exchange.endpoint, () => share(key, (flight) => fetchAnswer(miss, flight)));
      count({ outcome: 'stale' });
      note('stale', stale(-found.ttl, 'stale-while-revalidate'));
      return found.value;
    }
    // The request that begins the work notes what it finds in place of this.
    note('shared', collapsed);
    return share(key, (flight) => fetchAnswer(miss, flight, note))
      .catch((error: unknown) => {
        // Looked up again, since a newer answer may have been kept meanwhile.
        const old = terms.staleIfError > 0 && isOutage(error) ? entries.get(key) : undefined;
        if (old === undefined || -old.ttl >= terms.staleIfError) throw error;
        note('stale', stale(-old.ttl, 'stale-if-error'));
        return old.value;
      })
      .finally(() => count({ outcome: lookup.require(exchange) }));
  };
}

/** Keeps signed answers for `maxAge`, and returns them unchanged, signature and timestamp included. */
export const cache = definePlugin({
  name: 'cache',
  // The cache waits for the calls of other processes, and gives up before the budget ends.
  budget: (_, endpoints) => Math.max(0, ...endpoints.map(longestWaitOf)) + MARGIN_MS,
  keys: [cacheKey],
  exposes: ['Cache-Status'],
  openapi: () => openApiPart,
  check: ({ endpoints }) => endpoints.flatMap(check),
  setup({ endpoints, answerConfig, states, meters, stateEngine, node, now, log }) {
    if (endpoints.every((endpoint) => policyOf(endpoint) === undefined)) return {};
    const entries = states.keep(kept, '', () => new CacheEntries<SignedResponse>({ now }));
    meters.gauge({ name: 'cache_entries', help: 'Answers in the cache' }, () => entries.size);
    meters.gauge({ name: 'cache_bytes', help: 'Bytes in the cache' }, () => entries.bytes);
    const search = stateEngine && searching({ area: stateEngine.area('cache'), node, now });
    const termsOf = perEndpoint(endpoints, termsIn({ node, answerConfig }));
    return { hooks: { answer: answering({ entries, search, count: lookupsIn(meters) }, termsOf, log) } };
  },
});
