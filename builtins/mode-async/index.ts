import {
  answerHeaders,
  clientIp,
  clientKey,
  definePlugin,
  type Exchange,
  type HttpResponse,
  isRefusal,
  type Log,
  Refusal,
  type Route,
  type Run,
  randomId,
  type Services,
  type SignedResponse,
  StateKey,
  StateUnavailable,
} from '../../plugins-sdk/index.ts';
import { within } from '../../plugins-sdk/within.ts';
import { describeAsync } from './openapi.ts';
import { SharedRecords } from './shared-records.ts';
import { type AsyncRecords, AsyncStore } from './store.ts';

/** A request id is a bearer secret: no cache on the way may keep what it opens. */
const headers = { 'Cache-Control': 'no-store' };

function reply(status: number, body: Readonly<Record<string, unknown>>, more = {}): HttpResponse {
  return { status, headers: { ...more, ...headers }, body: JSON.stringify(body) };
}

/** @param id of the record. */
async function finish(
  store: AsyncRecords<SignedResponse>,
  id: string,
  run: Run,
  exchange: Exchange,
  log: Log,
): Promise<void> {
  try {
    await store.processing(id);
    const answer = await run({ detached: true });
    await store.complete(id, answer, answerHeaders.get(exchange));
  } catch (error) {
    if (error instanceof StateUnavailable) {
      log.error('the answer of an async request is lost: its engine was away for too long', { error: error.message });
      return;
    }
    if (!isRefusal(error)) log.error('an async request failed without a refusal', { error: String(error) });
    const text = isRefusal(error) ? String(error.body.error ?? error.message) : 'Internal server error';
    await store.fail(id, text, answerHeaders.get(exchange));
  }
}

/** @throws Refusal where it is not known what there is. */
function refuse(error: unknown): never {
  if (!(error instanceof StateUnavailable)) throw error;
  throw new Refusal(503, 'Service Unavailable', { headers, reason: error.message });
}

async function poll(store: AsyncRecords<SignedResponse>, requestId: string): Promise<HttpResponse> {
  const record = await Promise.resolve(store.get(requestId)).catch(refuse);
  if (record === undefined) throw new Refusal(404, 'Request not found', { headers });
  const { status } = record;
  if (record.status === 'complete')
    return { status: 200, headers: { ...record.headers, ...headers }, body: record.answer.with({ requestId, status }) };
  if (record.status === 'failed') return reply(200, { requestId, status, error: record.error }, record.headers);
  return reply(200, { requestId, status, pollUrl: `/requests/${requestId}` });
}

const kept = new StateKey<AsyncStore<SignedResponse>>('async records');
const keptOwn = new StateKey<AsyncStore<true>>('own async records');

/** Milliseconds between two sweeps of expired records. */
const SWEEP = 10_000;

/** The part of the time to stop that records have to be finished. */
const STOP_PART = 0.8;

/** Records that are being finished, which a stop waits for. */
type Finishing = Set<Promise<void>>;

/** Answers where to poll, while the work goes on. */
function deliverTo(store: AsyncRecords<SignedResponse>, finishing: Finishing, log: Log) {
  return async (run: Run, exchange: Exchange): Promise<HttpResponse> => {
    const requestId = randomId();
    const reserved = await Promise.resolve(store.reserve(requestId, clientKey(clientIp(exchange)))).catch(refuse);
    if (!reserved) throw new Refusal(503, 'Service Unavailable', { headers });
    const finished = finish(store, requestId, run, exchange, log)
      .catch((error) => log.error('an async record was lost', { error: String(error) }))
      .finally(() => finishing.delete(finished));
    finishing.add(finished);
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

interface Records {
  readonly records: AsyncRecords<SignedResponse>;
  /** Those of this process. */
  readonly own: Pick<AsyncStore<unknown>, 'dropExpired' | 'size'>;
  stop(): void;
}

function recordsIn({ states, shared, node }: Services): Records {
  if (shared?.processes !== 'many') {
    const own = states.keep(kept, '', () => new AsyncStore<SignedResponse>());
    return { records: own, own, stop: () => undefined };
  }
  const own = states.keep(keptOwn, '', () => new AsyncStore<true>());
  const records = new SharedRecords(own, shared.area('async'), node);
  return { records, own, stop: () => records.stop() };
}

/** 202 at once, the signed answer by polling `GET /requests/{requestId}`. */
export const modeAsync = definePlugin({
  name: 'mode-async',
  budget: 'none',
  modes: ['async'],
  needsState: { modes: ['async'] },
  openapi: describeAsync,
  setup(services) {
    const { log, meters } = services;
    const { records, own, stop } = recordsIn(services);
    meters.gauge({ name: 'async_records', help: 'Async requests in the store' }, () => {
      own.dropExpired();
      return own.size;
    });
    const finishing: Finishing = new Set();
    let sweeping: NodeJS.Timeout | undefined;
    return {
      // Answers may be large, and no later request may come to drop them.
      start: () => {
        sweeping = setInterval(() => own.dropExpired(), SWEEP).unref();
      },
      stop: async (deadline) => {
        clearInterval(sweeping);
        await within(deadline * STOP_PART, Promise.all(finishing), () => []);
        stop();
      },
      hooks: { deliver: { async: deliverTo(records, finishing, log) } },
      routes: [pollRoute(records)],
    };
  },
});
