import {
  clientIp,
  clientKey,
  type Definition,
  definePlugin,
  type Exchange,
  type HttpResponse,
  isRefusal,
  type Log,
  Refusal,
  type Route,
  type Run,
  randomId,
  type SignedResponse,
  StateKey,
} from '../../plugins-sdk/index.ts';
import { describeAsync } from './openapi.ts';
import { type AsyncRecords, AsyncStore } from './store.ts';

/** A request id is a bearer secret: no cache on the way may keep what it opens. */
const headers = { 'Cache-Control': 'no-store' };

function reply(status: number, body: Readonly<Record<string, unknown>>): HttpResponse {
  return { status, headers, body: JSON.stringify(body) };
}

async function finish(store: AsyncRecords<SignedResponse>, requestId: string, run: Run, log: Log): Promise<void> {
  try {
    await store.processing(requestId);
    await store.complete(requestId, await run({ detached: true }));
  } catch (error) {
    if (!isRefusal(error)) log.error('an async request failed without a refusal', { error: String(error) });
    await store.fail(requestId, isRefusal(error) ? String(error.body.error ?? error.message) : 'Internal server error');
  }
}

async function poll(store: AsyncRecords<SignedResponse>, requestId: string): Promise<HttpResponse> {
  const record = await store.get(requestId);
  if (record === undefined) throw new Refusal(404, 'Request not found', { headers });
  const { status } = record;
  if (record.status === 'complete') return { status: 200, headers, body: record.answer.with({ requestId, status }) };
  if (record.status === 'failed') return reply(200, { requestId, status, error: record.error });
  return reply(200, { requestId, status, pollUrl: `/requests/${requestId}` });
}

const kept = new StateKey<AsyncStore<SignedResponse>>('async records');

/** Milliseconds between two sweeps of expired records. */
const SWEEP = 10_000;

/** 202 at once, the signed answer by polling `GET /requests/{requestId}`. */
export const modeAsync = modeAsyncWith(() => new AsyncStore());

/** Answers where to poll, while the work goes on. */
function deliverTo(store: AsyncRecords<SignedResponse>, log: Log) {
  return async (run: Run, exchange: Exchange): Promise<HttpResponse> => {
    const requestId = randomId();
    const reserved = await store.reserve(requestId, clientKey(clientIp(exchange)));
    if (!reserved) throw new Refusal(503, 'Service Unavailable', { headers });
    finish(store, requestId, run, log).catch((error) =>
      log.error('an async record was lost', { error: String(error) }),
    );
    return reply(202, { requestId, status: 'pending', pollUrl: `/requests/${requestId}` });
  };
}

function pollRoute(store: AsyncRecords<SignedResponse>): Route {
  return {
    method: 'GET',
    path: '/requests/:requestId',
    admit: true,
    handle: ({ params: { requestId = '' } }) => poll(store, requestId),
  };
}

/** @param records makes the store of what clients may poll. */
export function modeAsyncWith(records: () => AsyncStore<SignedResponse>): Definition {
  return definePlugin({
    name: 'mode-async',
    budget: 'none',
    modes: ['async'],
    openapi: describeAsync,
    setup({ log, states, meters }) {
      const store = states.keep(kept, '', records);
      meters.gauge({ name: 'async_records', help: 'Async requests in the store' }, () => {
        store.dropExpired();
        return store.size;
      });
      let sweeping: NodeJS.Timeout | undefined;
      return {
        // Answers may be large, and no later request may come to drop them.
        start: () => {
          sweeping = setInterval(() => store.dropExpired(), SWEEP).unref();
        },
        stop: () => clearInterval(sweeping),
        hooks: { deliver: { async: deliverTo(store, log) } },
        routes: [pollRoute(store)],
      };
    },
  });
}
