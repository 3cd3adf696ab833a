import { closedObject, millisecondsSchema, optionalKey } from '../../plugins-sdk/config.ts';
import {
  ContextKey,
  definePlugin,
  type Endpoint,
  perEndpoint,
  type Services,
  type Taps,
  Type,
} from '../../plugins-sdk/index.ts';
import { StateKey } from '../../plugins-sdk/state.ts';
import { basesOf, failureKindOf, hostOf, unavailable } from '../shared/upstream.ts';
import { failures } from './openapi.ts';

const DEFAULTS = { failures: 5, openFor: 30_000 };

const breaker = optionalKey(
  'api',
  'breaker',
  Type.Union(
    [
      Type.Boolean(),
      closedObject({
        failures: Type.Optional(
          Type.Integer({ minimum: 1, maximum: 1000, description: 'Failures in a row that open it; default 5' }),
        ),
        openFor: Type.Optional(millisecondsSchema('Time until one call tries the host again; default 30s')),
      }),
    ],
    { description: 'Stops calling a host that keeps failing; default false' },
  ),
);

type Policy = typeof DEFAULTS;

function policyOf(endpoint: Pick<Endpoint, 'block' | 'apiBlock'>): Policy | undefined {
  const value = breaker.of(endpoint);
  if (value === undefined || value === false) return undefined;
  return value === true ? DEFAULTS : { ...DEFAULTS, ...value };
}

/** The new state of a breaker; `half_open` each time that one call tries whether the host is back. */
type Turn = (typeof TURNS)[number];
const TURNS = ['open', 'half_open', 'closed'] as const;

/** The breaker of one API and host. Closed, it lets all calls pass; open, none; after `openFor`, one at a time. */
class Breaker {
  readonly api: string;
  readonly host: string;
  /** Number of failures in a row. */
  failures = 0;
  #openUntil: number | undefined;
  #isTrying = false;

  constructor(api: string, host: string) {
    this.api = api;
    this.host = host;
  }

  /** `trying`: `openFor` is over, and one call at a time tries whether the host is back. */
  get state(): 'up' | 'away' | 'trying' {
    if (this.#openUntil === undefined) return 'up';
    return this.#openUntil > performance.now() ? 'away' : 'trying';
  }

  /**
   * Begins a call.
   * @returns whether the call is the one that tries the host.
   * @throws Refusal 503 while the breaker is open.
   */
  begin(): boolean {
    if (this.#openUntil === undefined) return false;
    const left = this.#openUntil - performance.now();
    if (left > 0 || this.#isTrying)
      throw unavailable(`${this.host} is asked no more for a while: it has failed too often`, left);
    this.#isTrying = true;
    return true;
  }

  /** Ends a call. @param hasFailed undefined: the call says nothing about the host. @returns how the breaker has turned, if so. */
  end(isTrial: boolean, hasFailed: boolean | undefined, { failures, openFor }: Policy): Turn | undefined {
    if (isTrial) this.#isTrying = false;
    if (hasFailed === undefined) return undefined;
    const wasOpen = this.#openUntil !== undefined;
    this.failures = hasFailed ? this.failures + 1 : 0;
    // A failed call that began before the breaker opened says nothing new.
    if (wasOpen && hasFailed && !isTrial) return undefined;
    const isOpen = hasFailed && (isTrial || this.failures >= failures);
    this.#openUntil = isOpen ? performance.now() + openFor : undefined;
    if (isOpen) return 'open';
    return wasOpen ? 'closed' : undefined;
  }
}

/** The breakers that have counted a failure of the request: its further attempts are not counted, so they open none. */
const counted = new ContextKey<Set<Breaker>>('breakers that count the failure');

/** Breakers by API and host: clients of one API cannot shut off another. They are kept over a reload. */
const kept = new StateKey<Map<string, Breaker>>('breakers of upstreams');

const nameOf = (api: string, host: string) => `${api} ${host}`;

/** Makes the breakers of the hosts that the config names; a plugin that calls other hosts has to limit those calls itself. */
function breakersOf({ endpoints, states, meters, status, log }: Services) {
  const before = states.keep(kept, '', () => new Map<string, Breaker>());
  const breakers = new Map<string, Breaker>();
  for (const endpoint of endpoints.filter((each) => policyOf(each) !== undefined))
    for (const host of basesOf(endpoint).map(hostOf)) {
      const name = nameOf(endpoint.api, host);
      breakers.set(name, before.get(name) ?? new Breaker(endpoint.api, host));
    }
  before.clear();
  for (const [name, each] of breakers) before.set(name, each);
  const all = [...breakers.values()];
  meters.gauge(
    { name: 'upstream_breakers_open', help: 'Upstream hosts that are asked no more, since they failed too often' },
    () => all.filter(({ state }) => state !== 'up').length,
  );
  const turns = meters.counter({
    name: 'upstream_breaker_turns_total',
    help: 'Turns of breakers: open, half_open (one call tries whether the host is back), closed',
    labels: ['api', 'host', 'to'],
    initial: all.flatMap(({ api, host }) => TURNS.map((to) => ({ api, host, to }))),
  });
  status.show('breakers', () => [...breakers].map(([name, { state }]) => ({ name, state })));
  const tell = ({ api, host, failures }: Breaker, to: Turn, isTrial: boolean) => {
    turns({ api, host, to });
    const fields = { host, failures };
    if (to === 'open' && !isTrial)
      log.warn('an upstream is asked no more for a while: it has failed too often', fields);
    if (to === 'closed') log.info('an upstream answers again', fields);
  };
  return { breakers, tell };
}

function breaking(services: Services): NonNullable<Taps['callApi']> {
  const { breakers, tell } = breakersOf(services);
  const policyAt = perEndpoint(services.endpoints, policyOf);
  return async (request, exchange, { next }) => {
    const policy = policyAt(exchange.endpoint);
    const found = policy && breakers.get(nameOf(exchange.endpoint.api, hostOf(request.url)));
    if (policy === undefined || found === undefined) return undefined;
    const isTrial = found.begin();
    if (isTrial) tell(found, 'half_open', isTrial);
    let hasFailed: boolean | undefined;
    try {
      const answer = await next();
      hasFailed = false;
      return answer;
    } catch (error) {
      const kind = failureKindOf(error);
      // A client that left, a full queue and a 429 do not show whether the host works.
      if (kind === undefined || kind === '429' || exchange.clientSignal.aborted) throw error;
      hasFailed = kind !== 'other';
      const counters = counted.get(exchange) ?? new Set();
      if (hasFailed && !isTrial && counters.has(found)) hasFailed = undefined;
      counted.set(exchange, counters.add(found));
      throw error;
    } finally {
      const turn = found.end(isTrial, hasFailed, policy);
      if (turn !== undefined) tell(found, turn, isTrial);
    }
  };
}

/** Spares clients the wait for an upstream that is down, and spares the upstream their calls. */
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
