import {
  ContextKey,
  configKey,
  definePlugin,
  type Endpoint,
  millisecondsSchema,
  refTo,
  type Services,
  StateKey,
  type Taps,
  Type,
} from '../plugins-sdk/index.ts';
import type { Log } from '../plugins-sdk/log.ts';
import type { Responses } from '../plugins-sdk/openapi/part.ts';
import { failureKindOf, unavailable } from './shared/upstream-failure.ts';

const DEFAULTS = { failures: 5, openFor: 30_000 };

const breaker = configKey(
  'api',
  'breaker',
  Type.Optional(
    Type.Union(
      [
        Type.Boolean(),
        Type.Object(
          {
            failures: Type.Optional(
              Type.Integer({
                minimum: 1,
                maximum: 1000,
                description: 'Failures in a row after which it opens; default 5',
              }),
            ),
            openFor: Type.Optional(
              millisecondsSchema('Milliseconds until one call tries whether the host is back; default 30000'),
            ),
          },
          { additionalProperties: false },
        ),
      ],
      { description: 'Asks a host no more once it has failed often; default false' },
    ),
  ),
);

type Policy = typeof DEFAULTS;

function policyOf(endpoint: Pick<Endpoint, 'block' | 'apiBlock'>): Policy | undefined {
  const value = breaker.of(endpoint);
  if (value === undefined || value === false) return undefined;
  return value === true ? DEFAULTS : { ...DEFAULTS, ...value };
}

/** What calls of a host came to. Closed, it lets all of them pass; open, none; once its time is over, one at a time. */
class Breaker {
  #failures = 0;
  #openUntil: number | undefined;
  #isTrying = false;
  readonly #host: string;

  constructor(host: string) {
    this.#host = host;
  }

  get isOpen(): boolean {
    return this.#openUntil !== undefined;
  }

  /**
   * @returns whether the call is the one that tries.
   * @throws Refusal 503 while it is open.
   */
  begin(): boolean {
    if (this.#openUntil === undefined) return false;
    const left = this.#openUntil - performance.now();
    if (left > 0 || this.#isTrying) throw unavailable(this.#host, left);
    this.#isTrying = true;
    return true;
  }

  /** @param hasFailed undefined: the call says nothing of the host. */
  end(isTrial: boolean, hasFailed: boolean | undefined, { failures, openFor }: Policy, log: Log): void {
    if (isTrial) this.#isTrying = false;
    if (hasFailed === undefined) return;
    const wasOpen = this.isOpen;
    this.#failures = hasFailed ? this.#failures + 1 : 0;
    // One that began before it opened tells nothing new by failing.
    if (wasOpen && hasFailed && !isTrial) return;
    const isOpen = hasFailed && (isTrial || this.#failures >= failures);
    this.#openUntil = isOpen ? performance.now() + openFor : undefined;
    const fields = { host: this.#host, failures: this.#failures };
    if (isOpen && !wasOpen) log.warn('an upstream is asked no more for a while: it has failed too often', fields);
    if (wasOpen && !isOpen) log.info('an upstream answers again', fields);
  }
}

/** The breakers that a request's failure has been counted by: the attempts of one request open none. */
const counted = new ContextKey<Set<Breaker>>('breakers that count the failure');

/** By API and host: what clients of one API ask cannot shut another one off. Shared by the generations before and after a reload. */
const kept = new StateKey<Map<string, Breaker>>('breakers of upstreams');

const hostOf = (url: string) => /^https?:\/\/([^/?#]+)/i.exec(url)?.[1] ?? '';

function breaking({ endpoints, states, meters, status, log }: Services): NonNullable<Taps['callApi']> {
  const breakers = states.keep(kept, '', () => new Map<string, Breaker>());
  meters.gauge(
    { name: 'upstream_breakers_open', help: 'Upstream hosts that are asked no more, since they failed too often' },
    () => [...breakers.values()].filter(({ isOpen }) => isOpen).length,
  );
  status.show('breakers', () => [...breakers].map(([name, { isOpen }]) => ({ name, state: isOpen ? 'away' : 'up' })));
  const policies = new Map(endpoints.map((endpoint) => [endpoint.api, policyOf(endpoint)]));
  return async (request, exchange, { next }) => {
    const { endpoint, client } = exchange;
    const policy = policies.get(endpoint.api);
    if (policy === undefined) return undefined;
    const host = hostOf(request.url);
    const key = `${endpoint.api} ${host}`;
    const found = breakers.get(key) ?? new Breaker(host);
    breakers.set(key, found);
    const isTrial = found.begin();
    let hasFailed: boolean | undefined;
    try {
      const answer = await next();
      hasFailed = false;
      return answer;
    } catch (error) {
      const kind = failureKindOf(error);
      // A client that left, a full queue and a 429 tell nothing of whether the host works.
      if (kind === undefined || kind === '429' || client.aborted) throw error;
      hasFailed = kind !== 'other';
      const counters = counted.get(exchange) ?? new Set();
      if (hasFailed && !isTrial && counters.has(found)) hasFailed = undefined;
      counted.set(exchange, counters.add(found));
      throw error;
    } finally {
      found.end(isTrial, hasFailed, policy, log);
    }
  };
}

const failures: Responses = {
  503: {
    description: 'The upstream has failed too often, and is asked no more for a while',
    errors: [unavailable('', 0).message],
    headers: { 'Retry-After': refTo('headers', 'RetryAfter') },
  },
};

/** Spares clients the wait for an upstream that is down, and the upstream the calls. */
export const upstreamBreaker = definePlugin({
  name: 'upstream-breaker',
  budget: 'none',
  keys: [breaker],
  openapi: () => ({ operation: (endpoint) => (policyOf(endpoint) === undefined ? {} : { failures }) }),
  setup: (services) =>
    services.endpoints.some((endpoint) => policyOf(endpoint) !== undefined)
      ? { hooks: { callApi: breaking(services) } }
      : {},
});
