import { isUtf8 } from 'node:buffer';
import type { Semaphore } from '../../lib/bounded/semaphore.ts';
import type { BoundedResponse } from '../../lib/http/client/index.ts';
import { JsonLimitError, readJson } from '../../lib/json/json-text.ts';
import { loadSoon, undiciClient } from '../../lib/process/packages.ts';
import { baseUrl, keys } from '../../plugins-sdk/config.ts';
import {
  type ApiResponse,
  ContextKey,
  createHttpClient,
  definePlugin,
  type Endpoint,
  type Exchange,
  type HttpClient,
  isRefusal,
  type Json,
  keep,
  type OutgoingRequest,
  perEndpoint,
  type Refusal,
  RequestFailure,
} from '../../plugins-sdk/index.ts';
import {
  classOfRequest,
  classOfStatus,
  failureClassOf,
  type Meters,
  redirectTarget,
} from '../../plugins-sdk/observe.ts';
import { isLeftOut } from '../shared/parameter-value.ts';
import { callTimeoutOf, failed, retryAfterOf } from '../shared/upstream.ts';
import { certificateMeter, tlsKey, tlsOf } from '../shared/upstream-tls.ts';
import { check } from './checks.ts';
import { failures } from './openapi.ts';
import { limitOf, limitsOf, maxCalls, maxCallsOfApi, slot, slotsFor } from './slots.ts';

/** Most bytes of an upstream answer, after decompression. */
const BODY_LIMIT = 1024 * 1024;

/** A request's upstream calls, for its log line: status of the last one, milliseconds in all, and number of calls. */
const calls = new ContextKey<{ readonly status: number | undefined; readonly ms: number; readonly attempts: number }>(
  'upstream',
  { logged: true },
);

function note(exchange: Exchange, milliseconds: number, status: number | undefined): void {
  const { ms, attempts } = calls.get(exchange) ?? { ms: 0, attempts: 0 };
  calls.set(exchange, { status, ms: Math.round((ms + milliseconds) * 10) / 10, attempts: attempts + 1 });
}

/** Returns the headers of a request and of its call. Of two with one name, in whatever case, the request's own wins. */
function sentHeaders({ headers, callHeaders }: OutgoingRequest): OutgoingRequest['headers'] {
  if (callHeaders === undefined) return headers;
  const own = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  const added = Object.entries(callHeaders).filter(([name]) => !own.has(name.toLowerCase()));
  return { ...Object.fromEntries(added), ...headers };
}

function refuse(error: unknown): never {
  if (!(error instanceof RequestFailure)) throw error;
  const { kind, message, status: upstreamStatus } = error;
  throw failed(`${kind}: ${message}`, classOfRequest(error), { upstreamStatus });
}

/** Notes scheme, host and path of a `Location` for the log, never its query. */
function noteRedirect(exchange: Exchange, base: string, { status, headers: { location } }: BoundedResponse): void {
  if (status < 300 || status > 399 || typeof location !== 'string' || !URL.canParse(location, base)) return;
  const { protocol, host, pathname } = new URL(location, base);
  redirectTarget.set(exchange, `${protocol}//${host}${pathname}`);
}

const BYTE_ORDER_MARK = Buffer.from('\ufeff');
/** Matches a character that is no white space in JSON. */
const NOT_SPACE = /[^ \t\r\n]/;

/** Statuses by which an upstream refuses a client's values; others concern the operator, as for a wrong key. */
const OF_REQUESTERS: ReadonlySet<number> = new Set([400, 404, 422]);

/** Makes the refusal of an answer with nothing that can be signed. */
function unusable(reason: string, upstreamStatus: number): Refusal {
  return failed(reason, 'body', { upstreamStatus });
}

/**
 * Checks and reads an upstream answer.
 * @param request that was answered.
 * @throws Refusal 502 unless the answer is a success in JSON that every later stage can handle.
 */
function accept({ status, headers, body }: BoundedResponse, request: OutgoingRequest, exchange: Exchange): ApiResponse {
  if (status < 200 || status > 299) {
    const said = { upstreamStatus: status, retryAfter: retryAfterOf(headers) };
    if (OF_REQUESTERS.has(status) && hasClientValue(exchange))
      throw failed(`upstream status ${status} to what the client asked for`, 'requester', said);
    throw failed(`upstream status ${status}`, classOfStatus(status), said);
  }
  if (!isUtf8(body)) throw unusable('the body is not in UTF-8', status);
  const hasMark = body.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
  const text = body.toString('utf8', hasMark ? BYTE_ORDER_MARK.length : 0);
  if (!NOT_SPACE.test(text)) return keep({ status, data: null, text: '', request });
  return keep({ status, data: jsonOf(text, status), text, request });
}

/** Whether a parameter of the request has its value from the client. */
function hasClientValue({ endpoint, parameters }: Exchange): boolean {
  const declared = keys.parameters.of(endpoint) ?? [];
  return declared.some((parameter) => parameter.fixed === undefined && !isLeftOut(parameter, parameters));
}

function jsonOf(text: string, status: number): Json {
  try {
    return readJson(text);
  } catch (error) {
    throw unusable(error instanceof JsonLimitError ? error.message : 'the body is no JSON', status);
  }
}

/**
 * Returns the failure class for the metrics; empty without a failure, and for an aborted call (`busy`), which says nothing about
 * the upstream.
 */
function classOfCall(error: unknown): string {
  const found = isRefusal(error) ? failureClassOf(error) : undefined;
  return found === undefined || found === 'busy' ? '' : found;
}

function instruments(endpoints: readonly Endpoint[], meters: Meters, slots: Semaphore) {
  certificateMeter(endpoints, meters);
  meters.gauge({ name: 'upstream_slots_in_use', help: 'Upstream calls under way' }, () => slots.inUse);
  meters.gauge(
    { name: 'upstream_slots_waiting', help: 'Requests that wait for an upstream slot' },
    () => slots.waiting,
  );
  const seconds = meters.histogram({
    name: 'upstream_call_seconds',
    help: 'Duration of upstream calls, without the wait for a slot',
    labels: ['api', 'endpoint', 'outcome', 'reason'],
  });
  return (exchange: Exchange, started: number, status: number | undefined, failure: unknown) => {
    const milliseconds = performance.now() - started;
    const { api, name } = exchange.endpoint;
    const outcome = failure === undefined ? 'ok' : 'failed';
    seconds({ api, endpoint: name, outcome, reason: classOfCall(failure) }, milliseconds / 1000);
    note(exchange, milliseconds, status);
  };
}

/**
 * Makes the HTTP clients of all APIs: one for each API with `tls`, and one for all others.
 * @param connections most sockets per origin.
 * @returns also a look-up of an endpoint's client and timeout.
 */
function clientsFor(endpoints: readonly Endpoint[], connections: number) {
  const usual = createHttpClient({ connections });
  const own = new Map<string, HttpClient>();
  const callOf = perEndpoint(endpoints, (endpoint) => {
    const tls = tlsOf(endpoint);
    if (tls !== undefined && !own.has(endpoint.api)) own.set(endpoint.api, createHttpClient({ connections, tls }));
    return { client: own.get(endpoint.api) ?? usual, longest: callTimeoutOf(endpoint) };
  });
  const close = () => Promise.all([usual, ...own.values()].map((client) => client.close()));
  return { callOf, close };
}

/** Calls the upstream: one deadline, at most 1 MiB, bounded concurrency. The wait for a slot has a deadline of its own. */
export const callApi = definePlugin({
  name: 'call-api',
  budget: 'none',
  keys: [keys.url, keys.headers, keys.timeout, tlsKey, keys.path, keys.method, maxCalls, maxCallsOfApi],
  identity: {
    url: baseUrl,
    path: (endpoint) => keys.path.of(endpoint) ?? '',
    method: (endpoint) => keys.method.of(endpoint) ?? 'GET',
  },
  check,
  openapi: () => ({ operation: () => ({ failures }) }),
  setup({ endpoints, config, states, meters }) {
    const limits = limitsOf(endpoints, config);
    const slots = slotsFor(limits, states);
    const measured = instruments(endpoints, meters, slots);
    const { callOf, close } = clientsFor(endpoints, limitOf(config));
    let takeBack: (() => void) | undefined;
    return {
      start: () => {
        takeBack = slots.change(limits);
        loadSoon(undiciClient);
      },
      stop: async () => {
        takeBack?.();
        await close();
      },
      hooks: {
        // The innermost function of its stage: it sends the request as it is.
        callApi: async (request, exchange) => {
          const { client, longest } = callOf(exchange.endpoint);
          const timeout = Math.min(longest, request.timeout ?? longest);
          const release = slots.tryAcquire(exchange.endpoint.api) ?? (await slot(slots, timeout, exchange));
          const started = performance.now();
          let status: number | undefined;
          let failure: unknown;
          try {
            const { method, url, body } = request;
            const headers = sentHeaders(request);
            const bounds = { timeout, maxBytes: BODY_LIMIT, signal: exchange.clientSignal };
            const answer = await client.request({ method, url, headers, body, ...bounds }).catch(refuse);
            status = answer.status;
            noteRedirect(exchange, url, answer);
            return accept(answer, request, exchange);
          } catch (error) {
            failure = error;
            throw error;
          } finally {
            release();
            measured(exchange, started, status, failure);
          }
        },
      },
    };
  },
});
