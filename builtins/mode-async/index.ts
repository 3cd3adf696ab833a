import { errorText } from '../../lib/text.ts';
import { type EndpointDraft, type Finding, keys, warning } from '../../plugins-sdk/config.ts';
import {
  answerHeaders,
  definePlugin,
  type Exchange,
  type HttpResponse,
  isRefusal,
  type Log,
  Refusal,
  type Route,
  type Run,
  type Services,
  type SignedResponse,
} from '../../plugins-sdk/index.ts';
import { randomId, StateKey, StateUnavailable } from '../../plugins-sdk/state.ts';
import { describeAsync } from './openapi.ts';
import { SharedRecords } from './shared-records.ts';
import { type AsyncRecord, AsyncStore, type Ended, UNFINISHED_TTL_MS } from './store.ts';

/** Kept in this process, or for all processes: await what their methods return. */
type Records = AsyncStore<SignedResponse> | SharedRecords;
type Told = Pick<Services, 'log' | 'debts'>;

/** A request ID is a bearer secret: no cache may keep the answer that it gives access to. */
const headers = { 'Cache-Control': 'no-store' };

function reply(status: number, body: Readonly<Record<string, unknown>>, more = {}): HttpResponse {
  return { status, headers: { ...more, ...headers }, body: JSON.stringify(body) };
}

/** Returns the members that every record has, whatever its status. */
function shownAs(requestId: string, status: AsyncRecord<unknown>['status']) {
  return { requestId, status, pollUrl: `/requests/${requestId}` };
}

const LATE = 'the answer of an async request is lost: it came after ten minutes, when its record had ended';
const LOST = 'the answer of an async request is lost: its engine was away for too long';

/** Runs the rest of a request, detached from its client, and returns how it ended. */
async function endOf(run: Run, exchange: Exchange, log: Log): Promise<Ended<SignedResponse>> {
  try {
    const answer = await run({ detached: true });
    return { status: 'complete', answer, headers: answerHeaders.get(exchange) };
  } catch (error) {
    if (!isRefusal(error)) log.error('an async request failed without a refusal', { error: String(error) });
    const text = isRefusal(error) ? String(error.body.error ?? error.message) : 'Internal server error';
    return { status: 'failed', error: text, headers: answerHeaders.get(exchange) };
  }
}

/** Runs a request and records its end. The run begins synchronously: a mode must have begun it when it answers. */
async function finish(store: Records, id: string, run: Run, exchange: Exchange, { log, debts }: Told): Promise<void> {
  const processing = store.processing(id);
  const end = await endOf(run, exchange, log);
  const { requestId } = exchange;
  // The answer may be paid for: a stop waits for it while the engine is slow or unreachable.
  const written = debts.owe({ message: LOST, fields: { requestId } });
  try {
    await processing;
    const isWritten = await store.end(id, end);
    if (!isWritten && end.status === 'complete') log.error(LATE, { requestId });
  } catch (error) {
    log.error(LOST, { requestId, error: errorText(error) });
  } finally {
    written();
  }
}

/** Turns a failure of the state into a refusal. @throws Refusal 503, or the error itself if it is another one. */
function refuse(error: unknown): never {
  if (!(error instanceof StateUnavailable)) throw error;
  throw new Refusal(503, 'Service Unavailable', { headers, reason: error.message, failureClass: 'engine' });
}

/** Answers a poll. HEAD shows no result, so it does not count as a read. */
async function poll(store: Records, requestId: string, method: string): Promise<HttpResponse> {
  const record = await Promise.resolve(store.get(requestId, method !== 'HEAD')).catch(refuse);
  if (record === undefined) throw new Refusal(404, 'Request not found', { headers });
  const shown = shownAs(requestId, record.status);
  if (record.status === 'complete')
    return { status: 200, headers: { ...record.headers, ...headers }, body: record.answer.with(shown) };
  if (record.status === 'failed') return reply(200, { ...shown, error: record.error }, record.headers);
  return reply(200, shown);
}

const kept = new StateKey<AsyncStore<SignedResponse>>('async records');

/** Makes the function that answers 202 with the URL to poll, while the work goes on. */
function presentTo(store: Records, told: Told) {
  return async (run: Run, exchange: Exchange): Promise<HttpResponse> => {
    const requestId = randomId();
    const reserved = await Promise.resolve(store.reserve(requestId)).catch(refuse);
    if (!reserved) throw new Refusal(503, 'Service Unavailable', { headers, failureClass: 'busy' });
    void finish(store, requestId, run, exchange, told);
    return reply(202, shownAs(requestId, 'pending'));
  };
}

const DROPPED = 'drops the answer of an API that takes 10 minutes, which apis[].timeout allows';

function check({ mode, path, ...endpoint }: EndpointDraft): Finding[] {
  const isLate = mode === 'async' && (keys.timeout.of(endpoint) ?? 0) >= UNFINISHED_TTL_MS;
  return isLate ? [warning(`${path}.mode`, DROPPED)] : [];
}

/** The mode `async`: 202 at once, the signed answer by polling `GET /requests/{requestId}`. */
export const modeAsync = definePlugin({
  name: 'mode-async',
  modes: ['async'],
  requiresSharedState: { modes: ['async'] },
  check: ({ endpoints }) => endpoints.flatMap(check),
  openapi: describeAsync,
  setup(services) {
    const { meters, states, stateEngine, node } = services;
    const own = states.keep(kept, '', () => new AsyncStore<SignedResponse>());
    const records = stateEngine ? new SharedRecords(own, stateEngine, node) : own;
    meters.gauge({ name: 'async_records', help: 'Async requests that make no room for others' }, () => own.taken);
    const handle: Route['handle'] = ({ params }, { method }) => poll(records, params.requestId ?? '', method);
    return {
      hooks: { present: { async: presentTo(records, services) } },
      routes: [{ method: 'GET', path: '/requests/:requestId', admit: true, handle }],
    };
  },
});
