import { hash } from 'node:crypto';
import { millisecondsSchema, optionalKey } from '../plugins-sdk/config.ts';
import {
  type ApiResponse,
  ContextKey,
  definePlugin,
  type Exchange,
  isRefusal,
  keep,
  type OutgoingRequest,
} from '../plugins-sdk/index.ts';
import { CacheEntries } from './shared/cache-entries.ts';

const shareFor = optionalKey(
  'api',
  'shareFor',
  millisecondsSchema('How long equal upstream requests share one answer; at most 1m; default none', {
    maximum: 60_000,
  }),
);

const MODE = 'sync';

/** Estimated memory of parsed data, for each character of its text. */
const BYTES_PER_CHARACTER = 8;

interface Shared {
  readonly answer: ApiResponse;
  /** Time of arrival, in milliseconds of the process's monotonic clock. */
  readonly arrivedAt: number;
}

/** The answer that a request was given. If it asks again, it must get another one. */
const given = new ContextKey<{ readonly key: string; readonly shared: Shared }>('shared answer');
/** Age of the answer in milliseconds, for the request's log line. */
const age = new ContextKey<number>('ageMs', { logged: true });

/**
 * Returns the key that equal requests share. It leaves out the headers of a single call, such as the client's own ID of it.
 * Values may be secret and of any length, so the key is a hash.
 */
function keyOf({ api }: Exchange['endpoint'], { method, url, headers, body }: OutgoingRequest): string {
  return hash('sha256', JSON.stringify([api, method, url, headers, body ?? null]), 'base64url');
}

/** Returns the kept answer, unless this request has had it already. */
function unseen(answers: CacheEntries<Shared>, key: string, exchange: Exchange): Shared | undefined {
  const found = answers.get(key)?.value;
  return found === given.get(exchange)?.shared ? undefined : found;
}

/** Forgets the answer that a request was given and found unusable. */
function forget(answers: CacheEntries<Shared>, exchange: Exchange): void {
  const { key = '', shared } = given.get(exchange) ?? {};
  if (shared !== undefined && answers.get(key)?.value === shared) answers.delete(key);
}

/** Lets equal upstream requests of an API share one answer; each request processes it by itself. */
export const upstreamShare = definePlugin({
  name: 'upstream-share',
  budget: 'none',
  keys: [shareFor],
  setup({ endpoints }) {
    if (endpoints.every((endpoint) => shareFor.of(endpoint) === undefined)) return {};
    const answers = new CacheEntries<Shared>();
    return {
      hooks: {
        // `expect` wraps this plugin, so an unexpected answer shows here, at the stage `answer`.
        answer: async (_, exchange, { next }) => {
          if (shareFor.of(exchange.endpoint) === undefined) return undefined;
          try {
            return await next();
          } catch (error) {
            if (isRefusal(error) && error.failureClass === 'unexpected') forget(answers, exchange);
            throw error;
          }
        },
        callApi: async (request, exchange, { share }) => {
          const { endpoint } = exchange;
          const ttl = shareFor.of(endpoint);
          if (ttl === undefined || endpoint.mode !== MODE) return undefined;
          const key = keyOf(endpoint, request);
          let shared = unseen(answers, key, exchange);
          if (shared === undefined) {
            const answer = await share(key, ({ next }) => next());
            shared = unseen(answers, key, exchange);
            if (shared?.answer !== answer) {
              shared = { answer, arrivedAt: performance.now() };
              answers.set(key, shared, { ttl, size: (answer.text?.length ?? 0) * BYTES_PER_CHARACTER });
            }
          }
          given.set(exchange, { key, shared });
          age.set(exchange, Math.round(performance.now() - shared.arrivedAt));
          return keep({ ...shared.answer, request });
        },
      },
    };
  },
});
