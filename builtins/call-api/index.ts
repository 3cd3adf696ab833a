import {
  type ApiResponse,
  createHttpClient,
  definePlugin,
  type Exchange,
  type HttpClient,
  keys,
  type Meters,
  perEndpoint,
  RequestFailure,
  type RequestParts,
  type Responses,
  resolvedParameters,
  sentRequest,
  vainWait,
  warmUp,
} from '../../plugins-sdk/index.ts';
import type { SlotPool } from '../../plugins-sdk/slot-pool.ts';
import { accept, failed } from './answer.ts';
import { check } from './checks.ts';
import { busy, checkSlots, limitOf, limitsOf, maxCalls, maxCallsOfApi, slot, slotsFor } from './slots.ts';
import { baseUrl, prepare, type Target, urlOf } from './target.ts';

/** Bytes of an upstream answer, after decompression. */
const BODY_LIMIT = 1024 * 1024;

function refuse(error: unknown): never {
  throw error instanceof RequestFailure ? failed(`${error.kind}: ${error.message}`) : error;
}

interface Upstream {
  readonly client: HttpClient;
  readonly target: Target;
  /** Milliseconds. */
  readonly timeout: number;
}

function call({ client, target, timeout }: Upstream, parts: RequestParts, exchange: Exchange): Promise<ApiResponse> {
  const { method } = target;
  const url = urlOf(target, parts);
  const headers = target.headersOf(parts);
  const { body } = parts;
  sentRequest.set(exchange, { method, url, headers, body });
  const signal = exchange.client;
  return client.request({ method, url, headers, body, timeout, maxBytes: BODY_LIMIT, signal }).then(accept, refuse);
}

/** The part of its timeout that a call must have left: a shorter call would hardly succeed, and burden the upstream. */
const SHORTEST_CALL = 1 / 2;

/**
 * Milliseconds to wait for a slot, and for the call. The waits for others' calls, for the slot and for the answer take two
 * timeouts together at most.
 * @throws Refusal 502 when the wait for others has left too little for a call.
 */
function timesOf(timeout: number, waited: number): { readonly forSlot: number; readonly timeout: number } {
  const left = 2 * timeout - waited;
  if (left < timeout * SHORTEST_CALL)
    throw failed(`waiting ${Math.round(waited)} ms for the calls of others has left no time for its own`);
  return { forSlot: Math.max(timeout - waited, 0), timeout: Math.min(timeout, left) };
}

function instruments(meters: Meters, slots: SlotPool) {
  meters.gauge({ name: 'upstream_slots_in_use', help: 'Upstream calls under way' }, () => slots.inUse);
  meters.gauge(
    { name: 'upstream_slots_waiting', help: 'Requests that wait for an upstream slot' },
    () => slots.waiting,
  );
  const seconds = meters.histogram({
    name: 'upstream_call_seconds',
    help: 'Duration of upstream calls, without the wait for a slot',
    labels: ['api', 'outcome'],
  });
  return ({ endpoint: { api } }: Exchange, outcome: 'ok' | 'failed', started: number) =>
    seconds({ api, outcome }, (performance.now() - started) / 1000);
}

const failures: Responses = {
  502: { description: 'The upstream gave no answer that can be signed', errors: [failed('').message] },
  503: { description: 'Too many upstream calls at once', errors: [busy('').message] },
};

/** Asks the upstream: one call, one deadline, at most 1 MiB, a bounded number at a time. */
export const callApi = definePlugin({
  name: 'call-api',
  budget: 'none',
  keys: [keys.url, keys.headers, keys.timeout, keys.path, keys.method, maxCalls, maxCallsOfApi],
  identity: {
    url: baseUrl,
    path: (endpoint) => keys.path.of(endpoint) ?? '',
    method: (endpoint) => keys.method.of(endpoint) ?? 'GET',
  },
  check: (context) => [...check(context), ...checkSlots(context)],
  openapi: () => ({ operation: () => ({ failures }) }),
  setup({ endpoints, config, states, meters }) {
    const limits = limitsOf(endpoints, config);
    const pool = slotsFor(limits, states);
    const measured = instruments(meters, pool);
    const prepared = perEndpoint(endpoints, prepare);
    const client = createHttpClient({ connections: limitOf(config) });
    let takeBack: (() => void) | undefined;
    return {
      start: () => {
        takeBack = pool.change(limits);
        return warmUp(() => client.load());
      },
      stop: () => {
        takeBack?.();
        return client.close();
      },
      hooks: {
        callApi: async (parameters, exchange) => {
          const { waited = 0, refusal } = vainWait.get(exchange) ?? {};
          if (refusal !== undefined) throw refusal;
          const target = prepared(exchange.endpoint);
          const parts = resolvedParameters.require(exchange).place(parameters);
          const slots = pool.of(exchange.endpoint.api);
          const { forSlot, timeout } = timesOf(target.timeout, waited);
          const release = slots.tryAcquire() ?? (await slot(slots, forSlot, exchange));
          const started = performance.now();
          let outcome: 'ok' | 'failed' = 'failed';
          try {
            const answer = await call({ client, target, timeout }, parts, exchange);
            outcome = 'ok';
            return answer;
          } finally {
            release();
            measured(exchange, outcome, started);
          }
        },
      },
    };
  },
});
