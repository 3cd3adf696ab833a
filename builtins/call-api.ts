import { setImmediate } from 'node:timers/promises';
import {
  type ApiResponse,
  type Awaitable,
  apiPath,
  type BoundedResponse,
  type CheckContext,
  checkHeaderName,
  configKey,
  createHttpClient,
  DEFAULT_TIMEOUT,
  definePlugin,
  type Endpoint,
  type EndpointDraft,
  type Exchange,
  error,
  type Finding,
  type HttpClient,
  isDeeperThan,
  isFiniteJson,
  isHeaderValue,
  type Json,
  keys,
  MAX_JSON_DEPTH,
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
} from '../plugins-sdk/index.ts';
import { undici, warmUp } from '../plugins-sdk/lazy.ts';
import { parseJsonInSteps } from '../plugins-sdk/parse-json.ts';

const maxCalls = configKey(
  'settings',
  'maxConcurrentApiCalls',
  Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000, description: 'Simultaneous upstream calls; default 50' })),
);

/** Bytes of an upstream answer, after decompression. */
const BODY_LIMIT = 1024 * 1024;

/** Characters of JSON up to which parsing them is a matter of a few milliseconds. */
const AT_ONCE = 64 * 1024;

/** What the text of every number too large for a double holds: an exponent of three digits, or as many places. */
const HUGE_NUMBER = /[eE]\+?\d{3}|(?<!\d)\d{309}/;

const utf8 = new TextDecoder('utf-8', { fatal: true });

function failed(reason: string): Refusal {
  return new Refusal(502, 'API call failed', { reason });
}

function checkUrl(endpoint: EndpointDraft): Finding[] {
  const at = `${apiPath(endpoint)}.url`;
  const text = keys.url.of(endpoint) ?? '';
  if (!URL.canParse(text)) return [error(at, 'is no valid URL')];
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return [error(at, 'must be an http or https URL')];
  if (url.username !== '' || url.password !== '') return [error(at, 'must hold no user name or password: use headers')];
  if (/[?#]/.test(text)) return [error(at, 'must hold no query or fragment: use parameters')];
  if (/[\s\\\p{Cc}]/u.test(text)) return [error(at, 'holds a character that must be percent-encoded')];
  return [];
}

function checkPath(endpoint: EndpointDraft): Finding[] {
  const path = keys.path.of(endpoint) ?? '';
  const [pathname = ''] = path.split('?');
  const at = `${endpoint.path}.path`;
  if (path.includes('#')) return [error(at, 'must hold no fragment')];
  if (/[\s\\]|[^\x21-\x7e]/.test(path)) return [error(at, 'holds a character that must be percent-encoded')];
  if (pathname.split('/').some((segment) => /^(\.|%2e){1,2}$/i.test(segment)))
    return [error(at, 'must hold no . or .. segment')];
  return [];
}

function checkHeaders(endpoint: EndpointDraft): Finding[] {
  const at = `${apiPath(endpoint)}.headers`;
  const headers = Object.entries(keys.headers.of(endpoint) ?? {});
  const names = headers.map(([name]) => name.toLowerCase());
  return headers.flatMap(([name, value], i) => [
    ...(names.indexOf(name.toLowerCase()) < i ? [error(`${at}.${name}`, 'is there twice: case does not count')] : []),
    ...checkHeaderName(`${at}.${name}`, name),
    ...(isHeaderValue(value) ? [] : [error(`${at}.${name}`, 'holds a character that no header can carry')]),
  ]);
}

/** Once per API: its endpoints share the block. */
function check({ endpoints }: CheckContext): Finding[] {
  const first = endpoints.filter(({ path }) => path.endsWith('.endpoints[0]'));
  return [...first.flatMap(checkUrl), ...first.flatMap(checkHeaders), ...endpoints.flatMap(checkPath)];
}

interface Prepared {
  readonly base: string;
  readonly method: string;
  readonly timeout: number;
  headersOf(parts: RequestParts): Headers;
}

type Headers = Readonly<Record<string, string>>;

function baseUrl(endpoint: Pick<Endpoint, 'own' | 'shared'>): string {
  return (keys.url.of(endpoint) ?? '').replace(/\/$/, '');
}

function prepare(endpoint: Endpoint): Prepared {
  const headers = keys.headers.of(endpoint) ?? {};
  const path = keys.path.of(endpoint) ?? '';
  return {
    base: baseUrl(endpoint) + (/^([/?]|$)/.test(path) ? '' : '/'),
    method: keys.method.of(endpoint) ?? 'GET',
    timeout: keys.timeout.of(endpoint) ?? DEFAULT_TIMEOUT,
    headersOf: compileHeaders({ headers, named: new Set(Object.keys(headers).map((name) => name.toLowerCase())) }),
  };
}

interface OwnHeaders {
  /** Names as configured, which win over a parameter's. */
  readonly headers: Headers;
  /** The same in lower case. */
  readonly named: ReadonlySet<string>;
}

function headersOf({ headers, named }: OwnHeaders, parts: Pick<RequestParts, 'headers' | 'cookie' | 'body'>): Headers {
  const merged: [string, string][] = [];
  const seen = new Set(named);
  const add = (name: string, value: string) => {
    if (seen.has(name.toLowerCase())) return;
    seen.add(name.toLowerCase());
    merged.push([name, value]);
  };
  for (const [name, value] of Object.entries(parts.headers)) add(name, value);
  if (parts.cookie !== undefined) add('cookie', parts.cookie);
  if (parts.body !== undefined) add('content-type', 'application/json');
  add('accept', 'application/json');
  add('user-agent', 'signed-data-proxy');
  return Object.freeze(Object.fromEntries([...merged, ...Object.entries(headers)]));
}

/** Most requests send no header or cookie of their own: theirs are made once. */
function compileHeaders(own: OwnHeaders): (parts: RequestParts) => Headers {
  const none = { headers: {}, cookie: undefined };
  const bare = headersOf(own, { ...none, body: undefined });
  const withBody = headersOf(own, { ...none, body: '' });
  return (parts) => {
    if (parts.cookie !== undefined || Object.keys(parts.headers).length > 0) return headersOf(own, parts);
    return parts.body === undefined ? bare : withBody;
  };
}

function urlOf({ base }: Prepared, { path, query }: RequestParts): string {
  if (query === '') return base + path;
  return `${base}${path}${path.includes('?') ? '&' : '?'}${query}`;
}

/** @throws Refusal 502 unless the answer is a success in JSON that every later stage can handle. */
function accept({ status, body }: BoundedResponse): Awaitable<ApiResponse> {
  if (status < 200 || status > 299) throw failed(`upstream status ${status}`);
  const text = decode(body);
  if (/^[ \t\r\n]*$/.test(text)) return { status, data: null, text: '' };
  if (isDeeperThan(text, MAX_JSON_DEPTH)) throw failed(`nested deeper than ${MAX_JSON_DEPTH} levels`);
  const take = (data: Json): ApiResponse => {
    if (HUGE_NUMBER.test(text) && !isFiniteJson(data)) throw failed('a number is too large for standard JSON');
    return { status, data, text };
  };
  return text.length <= AT_ONCE ? take(parseJson(text)) : parseLongJson(text).then(take);
}

/** What the client gets to know of a call that failed. */
function refuse(error: unknown): never {
  throw error instanceof RequestFailure ? failed(`${error.kind}: ${error.message}`) : error;
}

function decode(body: Buffer): string {
  try {
    return utf8.decode(body);
  } catch {
    throw failed('the body is not in UTF-8');
  }
}

function parseJson(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    throw failed('the body is no JSON');
  }
}

async function parseLongJson(text: string): Promise<Json> {
  try {
    const data = await parseJsonInSteps(text);
    // What comes next gets a turn of its own.
    await setImmediate();
    return data;
  } catch {
    throw failed('the body is no JSON');
  }
}

async function slot(slots: Semaphore, timeout: number, exchange: Exchange): Promise<Release> {
  try {
    return await slots.acquire(timeout, exchange.signal);
  } catch (error) {
    if (error instanceof SlotTimeout) throw new Refusal(503, 'Server busy', { reason: error.message });
    throw failed('the client left while it waited for a slot');
  }
}

function call(client: HttpClient, prepared: Prepared, parts: RequestParts, exchange: Exchange): Promise<ApiResponse> {
  const { method, timeout } = prepared;
  const url = urlOf(prepared, parts);
  const headers = prepared.headersOf(parts);
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
