import {
  type ApiResponse,
  configKey,
  createHttpClient,
  definePlugin,
  type Exchange,
  type HttpClient,
  keys,
  type Meters,
  perEndpoint,
  Refusal,
  type Release,
  RequestFailure,
  type RequestParts,
  resolvedParameters,
  Semaphore,
  SlotTimeout,
  StateKey,
  sentRequest,
  Type,
} from '../../plugins-sdk/index.ts';
import { undici, warmUp } from '../../plugins-sdk/lazy.ts';
import { accept, failed } from './answer.ts';
import { check } from './checks.ts';
import { baseUrl, prepare, type Target, urlOf } from './target.ts';

const maxCalls = configKey(
  'settings',
  'maxConcurrentApiCalls',
  Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000, description: 'Simultaneous upstream calls; default 50' })),
);

/** Bytes of an upstream answer, after decompression. */
const BODY_LIMIT = 1024 * 1024;

function refuse(error: unknown): never {
  throw error instanceof RequestFailure ? failed(`${error.kind}: ${error.message}`) : error;
}

async function slot(slots: Semaphore, timeout: number, exchange: Exchange): Promise<Release> {
  try {
    return await slots.acquire(timeout, exchange.signal);
  } catch (error) {
    if (error instanceof SlotTimeout) throw new Refusal(503, 'Server busy', { reason: error.message });
    throw failed('the client left while it waited for a slot');
  }
}

function call(client: HttpClient, target: Target, parts: RequestParts, exchange: Exchange): Promise<ApiResponse> {
  const { method, timeout } = target;
  const url = urlOf(target, parts);
  const headers = target.headersOf(parts);
  const { body } = parts;
  sentRequest.set(exchange, { method, url, headers, body });
  const signal = exchange.departure;
  return client.request({ method, url, headers, body, timeout, maxBytes: BODY_LIMIT, signal }).then(accept, refuse);
}

const kept = new StateKey<Semaphore>('upstream slots');

function instruments(meters: Meters, slots: Semaphore) {
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

/** Asks the upstream: one call, one deadline, at most 1 MiB, a bounded number at a time. */
export const callApi = definePlugin({
  name: 'call-api',
  budget: 'none',
  required: true,
  keys: [keys.url, keys.headers, keys.timeout, keys.path, keys.method, maxCalls],
  identity: {
    url: baseUrl,
    path: (endpoint) => keys.path.of(endpoint) ?? '',
    method: (endpoint) => keys.method.of(endpoint) ?? 'GET',
  },
  check,
  setup({ endpoints, config, states, meters }) {
    const limit = maxCalls.in(config) ?? 50;
    const slots = states.keep(kept, String(limit), () => new Semaphore(limit));
    const measured = instruments(meters, slots);
    const prepared = perEndpoint(endpoints, prepare);
    const client = createHttpClient({ connections: limit });
    return {
      start: () => warmUp(undici),
      stop: () => client.close(),
      hooks: {
        callApi: async (parameters, exchange) => {
          const target = prepared(exchange.endpoint);
          const parts = resolvedParameters.require(exchange).place(parameters);
          const release = slots.tryAcquire() ?? (await slot(slots, target.timeout, exchange));
          const started = performance.now();
          let outcome: 'ok' | 'failed' = 'failed';
          try {
            const answer = await call(client, target, parts, exchange);
            outcome = 'ok';
            return answer;
          } finally {
            measured(exchange, outcome, started);
            release();
          }
        },
      },
    };
  },
});
