/** The trace of a client goes upstream where it is well formed. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { beforeEach, describe, it } from 'node:test';
import { finished, submitted } from '../support/async.ts';
import { suite } from '../support/lifetime.ts';
import { honest } from '../support/reclaim.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, type Upstream, upstreamFor } from '../support/upstream.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = `00-${TRACE}-00f067aa0ba902b7-01`;
const OTHER = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00';

const encoding = { type: 'uint256', path: '$.value' };
const endpoints = {
  plain: { encoding },
  async: { encoding, mode: 'async' },
  stream: { encoding, mode: 'stream' },
  cached: { encoding, cache: { maxAge: 600_000 }, parameters: [{ name: 'q' }] },
  receipt: { encoding, receipt: true },
  proven: { encoding, responseMatches: [{ type: 'regex', value: 'value' }] },
  'as-parameter': { encoding, parameters: [{ name: 'Traceparent', in: 'header', fixed: OTHER }] },
};

/** The headers of a trace and of a client that the upstream got. */
function traceOf({ requests }: Upstream, index = -1): Readonly<Record<string, unknown>> {
  const { headers } = requests.at(index) ?? assert.fail('the upstream was not asked');
  const names = ['traceparent', 'tracestate', 'x-client-request-id', 'x-request-id'];
  return Object.fromEntries(names.flatMap((name) => (name in headers ? [[name, headers[name]]] : [])));
}

describe('the trace of a client goes upstream (W3C Trace Context)', async () => {
  const upstream = await upstreamFor(suite, { '*': faults.json({ value: 7 }) });
  const gateway = await upstreamFor(suite, { '*': honest });
  const proof = { type: 'reclaim', gatewayUrl: `${gateway.url}/prove` };
  const service = await serviceFor(suite, oneApi(upstream.url, endpoints, { settings: { proof } }));
  const headers = { TraceParent: OTHER, 'X-Client-Request-ID': 'the-operators' };
  const operators = await serviceFor(suite, oneApi(upstream.url, endpoints, { api: { headers } }));

  beforeEach(() => {
    upstream.requests.length = 0;
    gateway.requests.length = 0;
  });

  /** What goes upstream for a request with these headers. */
  async function sent(headers: Record<string, string>, endpoint = 'plain', { post } = service) {
    const response = await post(`api/${endpoint}`, {}, headers);
    assert.equal(response.status, 200, await response.text());
    return traceOf(upstream);
  }

  it('sends nothing for a client that says nothing', async () => {
    assert.deepEqual(await sent({}), {});
  });

  for (const mode of ['plain', 'stream'])
    it(`hands on traceparent, tracestate and X-Request-Id: ${mode}`, async () => {
      const trace = { traceparent: PARENT, tracestate: 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE, vendor@sys=a b!' };
      const id = 'Order:7_a.b-c';
      assert.deepEqual(await sent({ ...trace, 'X-Request-Id': id }, mode), { ...trace, 'x-client-request-id': id });
    });

  it('hands them on in async mode, where the answer has left before', async () => {
    const response = await service.post('api/async', {}, { traceparent: PARENT, 'X-Request-Id': 'a' });
    assert.equal((await finished(service, await submitted(response))).status, 'complete');
    assert.deepEqual(traceOf(upstream), { traceparent: PARENT, 'x-client-request-id': 'a' });
  });

  const later = PARENT.replace(/^00/, 'cc');
  const valid: Readonly<Record<string, readonly [given: string, sent: string]>> = {
    'not sampled': [OTHER, OTHER],
    'unknown flags of version 00': [PARENT.replace(/01$/, 'ff'), PARENT.replace(/01$/, 'ff')],
    'a later version': [later, PARENT],
    'a later version with more members': [`${later.replace(/01$/, '02')}-what-ever`, PARENT.replace(/01$/, '00')],
  };
  for (const [name, [given, expected]] of Object.entries(valid))
    it(`hands on a traceparent: ${name}`, async () => {
      assert.deepEqual(await sent({ traceparent: given }), { traceparent: expected });
    });

  const invalid: Readonly<Record<string, string>> = {
    'version ff': PARENT.replace(/^00/, 'ff'),
    'more members in version 00': `${PARENT}-x`,
    'more characters in a later version': `${PARENT.replace(/^00/, 'cc')}.x`,
    'an id of zeros': `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
    'a parent of zeros': `00-${TRACE}-${'0'.repeat(16)}-01`,
    'upper case': PARENT.toUpperCase(),
    'one digit too few': PARENT.slice(0, -1),
    'no hex': PARENT.replace('4bf9', '4bfg'),
    'two headers': `${PARENT}, ${PARENT}`,
  };
  for (const [name, traceparent] of Object.entries(invalid))
    it(`drops a traceparent and the tracestate with it: ${name}`, async () => {
      assert.deepEqual(await sent({ traceparent, tracestate: 'a=1' }), {});
    });

  it('drops a tracestate without a traceparent', async () => {
    assert.deepEqual(await sent({ tracestate: 'a=1' }), {});
  });

  const states: Readonly<Record<string, string>> = {
    'no value': 'a=',
    'no key': '=1',
    'an upper-case key': 'A=1',
    'a key that begins with a digit': '1a=1',
    'an = in the value': 'a=1=2',
    'more than 32 members': Array.from({ length: 33 }, (_, i) => `k${i}=1`).join(','),
    'a value of more than 256 characters': `a=${'x'.repeat(257)}`,
    'nothing but commas': ',,',
  };
  for (const [name, tracestate] of Object.entries(states))
    it(`drops an invalid tracestate alone: ${name}`, async () => {
      assert.deepEqual(await sent({ traceparent: PARENT, tracestate }), { traceparent: PARENT });
    });

  it('hands on the largest tracestate that there may be, and empty members', async () => {
    const largest = Array.from({ length: 32 }, (_, i) => `k${i}=${'x'.repeat(100)}`).join(',');
    for (const trace of [largest, 'a=1,,b=2'].map((tracestate) => ({ traceparent: PARENT, tracestate })))
      assert.deepEqual(await sent(trace), trace);
  });

  for (const id of ['', 'a b', 'a,b', 'a/b', 'é', 'x'.repeat(129)])
    it(`drops an X-Request-Id such as ${JSON.stringify(id.slice(0, 9))}`, async () => {
      assert.deepEqual(await sent({ 'X-Request-Id': id }), {});
    });

  it('hands on an X-Request-Id of 128 characters', async () => {
    const id = 'x'.repeat(128);
    assert.deepEqual(await sent({ 'X-Request-Id': id }), { 'x-client-request-id': id });
  });

  it("lets the operator's own headers win, and drops the client's tracestate with its traceparent", async () => {
    const headers = { traceparent: PARENT, tracestate: 'a=1', 'X-Request-Id': 'mine' };
    const own = { traceparent: OTHER, 'x-client-request-id': 'the-operators' };
    assert.deepEqual(await sent(headers, 'plain', operators), own);
    assert.deepEqual(await sent(headers, 'as-parameter'), { traceparent: OTHER, 'x-client-request-id': 'mine' });
  });

  it('keeps them out of the cache key: the trace of a call is that of the request that made it', async () => {
    const first = await service.post('api/cached', {}, { traceparent: PARENT, 'X-Request-Id': 'first' });
    const second = await service.post('api/cached', {}, { traceparent: OTHER, 'X-Request-Id': 'second' });
    assert.deepEqual(await second.json(), await first.json());
    assert.equal(upstream.requests.length, 1);
    assert.deepEqual(traceOf(upstream), { traceparent: PARENT, 'x-client-request-id': 'first' });
  });

  it('shares one call among requests of many traces: it is in that of the first', async () => {
    const events = new EventEmitter();
    const held = once(events, 'answer');
    upstream.on('/cached', async (req, res, recorded) => {
      await held;
      await faults.json({ value: 8 })(req, res, recorded);
    });
    const ask = (traceparent: string) => service.post('api/cached', { q: 'herd' }, { traceparent });
    const first = ask(PARENT);
    await upstream.until(() => upstream.requests.length === 1);
    const others = Array.from({ length: 3 }, () => ask(OTHER));
    events.emit('answer');
    const answers = await Promise.all([first, ...others].map(async (response) => (await response).json()));
    for (const other of answers) assert.deepEqual(other, answers[0]);
    assert.equal(upstream.requests.length, 1);
    assert.deepEqual(traceOf(upstream), { traceparent: PARENT });
  });

  it('keeps them out of the endpoint id, the request hash and the receipt', async () => {
    const ask = async (headers: Record<string, string>) => {
      const answer = (await (await service.post('api/receipt', {}, headers)).json()) as Record<string, unknown>;
      const { requestHash, dataHash } = answer.receipt as Record<string, unknown>;
      return { id: answer.endpointId, data: answer.data, requestHash, dataHash, members: Object.keys(answer) };
    };
    const plain = await ask({});
    assert.deepEqual(await ask({ traceparent: PARENT, tracestate: 'a=1', 'X-Request-Id': 'x' }), plain);
    assert.deepEqual(traceOf(upstream), { traceparent: PARENT, tracestate: 'a=1', 'x-client-request-id': 'x' });
  });

  it('keeps them out of TLS proofs: the gateway gets the headers of the request alone', async () => {
    const response = await service.post('api/proven', {}, { traceparent: PARENT, 'X-Request-Id': 'x' });
    const { proof } = (await response.json()) as { readonly proof?: unknown };
    assert.ok(proof !== undefined, 'there is a proof');
    assert.equal(traceOf(upstream).traceparent, PARENT);
    const asked = JSON.parse(gateway.requests[0]?.body ?? '{}') as { readonly headers?: unknown };
    assert.deepEqual(asked.headers, { accept: 'application/json', 'user-agent': 'signed-data-proxy' });
  });

  it('hands them on beside an isolated plugin, which sees them at onHttpRequest and changes what is asked', async (t) => {
    const source = `export default { name: 'p', hooks: {
      onHttpRequest: ({ headers }) => headers.traceparent === '${PARENT}' ? undefined : { status: 400, message: 'none' },
      onBeforeApiCall: () => ({ parameters: { q: 'changed' } }),
    } };`;
    const plain = { plain: { encoding, parameters: [{ name: 'q' }] } };
    const settings = { plugins: [{ source: './p.mjs', isolate: true, timeout: 60_000 }] };
    const isolated = await serviceFor(t, oneApi(upstream.url, plain, { settings }), { files: { 'p.mjs': source } });
    const headers = { traceparent: PARENT, tracestate: 'a=1', 'X-Request-Id': 'mine' };
    const expected = { traceparent: PARENT, tracestate: 'a=1', 'x-client-request-id': 'mine' };
    assert.deepEqual(await sent(headers, 'plain', isolated), expected);
    assert.equal(upstream.requests[0]?.path, '/plain?q=changed');
  });
});
