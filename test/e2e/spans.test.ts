/** Spans of requests go to a collector, and cost no answer when it is away. */

import assert from 'node:assert/strict';
import { after, beforeEach, describe, it } from 'node:test';
import { Interface } from 'ethers';
import { finished, submitted } from '../support/async.ts';
import { type CollectedSpan, startCollector } from '../support/collector.ts';
import { stopAll, suite } from '../support/lifetime.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const OTHER = '0af7651916cd43dd8448eb211c80319c';

const encoding = { type: 'uint256', path: '$.value' };
const endpoints = {
  plain: { encoding, parameters: [{ name: 'q' }] },
  failing: { encoding },
  broken: { encoding: { type: 'uint256', path: '$.nothing' } },
  retried: { encoding },
  async: { encoding, mode: 'async' },
  cached: { encoding, cache: { maxAge: 600_000 }, parameters: [{ name: 'q' }] },
  locked: { encoding, auth: { type: 'apiKey', keys: [{ name: 'me', key: 'of-the-client' }] } },
};

/** Asks the upstream again once, where it said no. */
const RETRY = `export default { name: 'retry', setup: () => ({ hooks: {
  callApi: (request, exchange, { next }) => next().catch(() => next()),
} }) };`;

describe('spans of requests go to a collector', async () => {
  let traces = 0;

  const collector = await startCollector();
  const { url } = collector;
  Object.assign(process.env, {
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,team=data',
    OTEL_BSP_SCHEDULE_DELAY: '20',
    OTEL_SERVICE_NAME: 'prices',
    OTEL_EXPORTER_OTLP_HEADERS: 'x-key=a%3Db',
  });
  const upstream = await upstreamFor(suite, { '*': faults.json({ value: 7 }), '/failing': faults.serverError() });
  const settings = { ccipRead: true, plugins: [{ source: './retry.mjs', timeout: 5000 }] };
  const config = oneApi(upstream.url, endpoints, { settings });
  const service = await serviceFor(suite, config, { files: { 'retry.mjs': RETRY }, env: { LOG_FORMAT: 'json' } });

  after(() => stopAll(collector));
  beforeEach(() => {
    upstream.requests.length = 0;
  });

  /** The spans of a trace once the request's own is there, by the order in which they began. */
  async function traceOf(id: string): Promise<{ root: CollectedSpan; children: CollectedSpan[] }> {
    const of = (spans: readonly CollectedSpan[]) => spans.filter(({ traceId }) => traceId === id);
    const spans = of(await collector.until((all) => of(all).some(({ kind }) => kind === 'server')));
    const [root, ...more] = spans.filter(({ kind }) => kind === 'server');
    assert.ok(root !== undefined && more.length === 0, 'one server span');
    const children = spans.filter((span) => span !== root);
    return { root, children: children.toSorted((a, b) => Number(a.start - b.start)) };
  }

  /** Begins a trace of its own for a request. */
  function newTrace(): { id: string; traceparent: string } {
    traces += 1;
    const id = TRACE.slice(0, -4) + String(traces).padStart(4, '0');
    return { id, traceparent: `00-${id}-00f067aa0ba902b7-01` };
  }
  /** Asks within a trace of its own. */
  async function askTraced(name: string, parameters = {}, headers: Record<string, string> = {}) {
    const { id, traceparent } = newTrace();
    const response = await service.post(`api/${name}`, parameters, { traceparent, ...headers });
    const text = await response.text();
    return { id, status: response.status, text, ...(await traceOf(id)) };
  }
  const callsOf = (children: readonly CollectedSpan[]) => children.filter(({ kind }) => kind === 'client');
  const factsOf = ({ attributes, isError }: CollectedSpan) => [
    attributes['http.response.status_code'],
    attributes['error.type'],
    isError,
  ];

  it('makes a server span, a child for each stage that did something, and one for the upstream call', async () => {
    const asked = await askTraced('plain', { q: 'secret-value' }, { 'X-Request-Id': 'mine' });
    const { id, root, children } = asked;
    assert.equal(asked.status, 200);
    const { name, parentId, attributes, isError } = root;
    const endpointId = service.ids['api/plain'];
    const endpoint = { 'sdp.api': 'api', 'sdp.endpoint': 'plain', 'sdp.endpoint_id': endpointId, 'sdp.mode': 'sync' };
    const route = { 'http.request.method': 'POST', 'http.route': '/endpoints/:endpointId' };
    const all = { ...route, 'http.response.status_code': 200, ...endpoint };
    const of = [name, parentId, attributes, isError];
    assert.deepEqual(of, ['POST /endpoints/:endpointId', '00f067aa0ba902b7', all, false]);
    for (const { parentId: parent, traceId } of children) assert.deepEqual([parent, traceId], [root.spanId, id]);
    const stages = children.filter(({ kind }) => kind === 'internal');
    assert.deepEqual(new Set(stages.map((span) => span.name)).size, stages.length, 'one span for a stage');
    const names = stages.map((span) => span.name);
    for (const stage of ['resolve', 'authenticate', 'validate', 'prepare', 'answer', 'callApi', 'encode', 'sign'])
      assert.ok(names.includes(stage), `${stage} did something`);
    for (const stage of ['encrypt', 'onBeforeSign', 'onHttpRequest'])
      assert.ok(!names.includes(stage), `${stage} did nothing`);
    const calls = callsOf(children);
    const facts = { 'http.request.method': 'GET', ...endpoint, 'http.response.status_code': 200 };
    const made = calls.map((call) => [call.name, call.attributes]);
    assert.deepEqual(made, [['GET api/plain', facts]]);
    const [call] = calls;
    assert.equal(upstream.requests[0]?.headers.traceparent, `00-${id}-${call?.spanId}-01`);
    assert.equal(upstream.requests[0]?.headers['x-client-request-id'], 'mine');
  });

  it('nests the times: every child of an answered request lies within its parent', async () => {
    const { root, children } = await askTraced('plain');
    for (const { name, start, end } of children)
      assert.ok(root.start <= start && start <= end && end <= root.end, `${name} is within the request`);
    const at = (name: string) => children.find((span) => span.name === name) ?? assert.fail(name);
    const [stage, call] = [at('callApi'), at('GET api/plain')];
    // A clock in floating-point milliseconds of the epoch is exact to a quarter of a microsecond.
    const slack = 1000n;
    assert.ok(stage.start - slack <= call.start && call.end <= stage.end + slack, 'the call is within its stage');
  });

  it('has no value, key, parameter, header or tracestate in them', async () => {
    const hidden = { tracestate: 'vendor=hidden-state', 'X-Request-Id': 'hidden-id', 'X-Api-Key': 'of-the-client' };
    const { text: answer, root, children } = await askTraced('locked', { q: 'hidden-parameter' }, hidden);
    const { data }: { readonly data: string } = JSON.parse(answer);
    const text = JSON.stringify([root, ...children], (_, value) => (typeof value === 'bigint' ? '' : value));
    for (const part of ['hidden-', 'of-the-client', data, upstream.url]) assert.ok(!text.includes(part), part);
    assert.deepEqual(new Set([root, ...children].map(({ traceState }) => traceState)), new Set(['']));
    assert.equal(upstream.requests[0]?.headers.tracestate, 'vendor=hidden-state');
  });

  it('says what the process is by the standard variables, and authenticates by them', async () => {
    const { root } = await askTraced('plain');
    const { 'service.name': name, 'deployment.environment.name': place, team, 'process.pid': pid } = root.resource;
    assert.deepEqual({ name, place, team, pid }, { name: 'prices', place: 'test', team: 'data', pid: process.pid });
    assert.equal(root.scope, 'signed-data-proxy');
    const { path, headers } = collector.requests[0] ?? assert.fail('nothing came');
    const of = [path, headers['content-type'], headers['x-key']];
    assert.deepEqual(of, ['/v1/traces', 'application/x-protobuf', 'a=b']);
  });

  it('begins a trace for a client that has none, and says it to the upstream', async () => {
    await (await service.post('api/plain', {}, {})).text();
    const sent = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/.exec(String(upstream.requests[0]?.headers.traceparent));
    assert.ok(sent !== null, 'the upstream gets a traceparent');
    const { root, children } = await traceOf(sent[1] ?? '');
    assert.equal(root.parentId, '');
    assert.equal(callsOf(children)[0]?.spanId, sent[2]);
    const logged = service.logs.filter(({ message, fields }) => message === 'request' && fields.traceId === sent[1]);
    assert.equal(logged.length, 1, 'the line of the request has the id of the trace');
  });

  it("keeps to the client's word that it is not sampled", async () => {
    const response = await service.post('api/plain', {}, { traceparent: `00-${OTHER}-b7ad6b7169203331-00` });
    await response.text();
    assert.match(String(upstream.requests[0]?.headers.traceparent), new RegExp(`^00-${OTHER}-[0-9a-f]{16}-00$`));
    await askTraced('plain');
    assert.ok(!collector.spans.some(({ traceId }) => traceId === OTHER));
  });

  it('has a span for each call of a plugin that asks again, with the class of its failure', async () => {
    const { status, root, children } = await askTraced('failing');
    assert.equal(status, 502);
    assert.deepEqual(factsOf(root), [502, 'status_5xx', true]);
    const calls = callsOf(children);
    assert.deepEqual(calls.map(factsOf), Array(2).fill([500, 'status_5xx', true]));
    const parents = upstream.requests.map(({ headers }) => String(headers.traceparent).split('-')[2]);
    const ids = calls.map(({ spanId }) => spanId);
    assert.deepEqual(parents, ids);
    const refused = children.filter(({ attributes }) => attributes['sdp.outcome'] === 'refused');
    const names = refused.map(({ name }) => name);
    assert.ok(names.includes('callApi') && names.includes('answer'), names.join());
  });

  it('names the class of a failure behind the call on the request alone', async () => {
    const { status, root, children } = await askTraced('broken');
    assert.deepEqual([status, root.attributes['error.type']], [502, 'encode']);
    assert.deepEqual(callsOf(children).map(factsOf), [[200, undefined, false]]);
  });

  it('tells refusals of a client from failures', async () => {
    const { status, root, children } = await askTraced('locked');
    assert.equal(status, 401);
    assert.deepEqual(factsOf(root), [401, undefined, false]);
    assert.equal(children.find(({ name }) => name === 'authenticate')?.attributes['sdp.outcome'], 'refused');
    assert.deepEqual(callsOf(children), []);
  });

  it('has the call of a shared or cached answer in the trace of the request that made it', async () => {
    const [first, second] = [await askTraced('cached'), await askTraced('cached')];
    assert.deepEqual([callsOf(first.children).length, callsOf(second.children).length], [1, 0]);
    assert.equal(upstream.requests[0]?.headers.traceparent?.slice(3, 35), first.id);
  });

  it('has what async mode does later under the request that asked for it', async () => {
    const { id, traceparent } = newTrace();
    const response = await service.post('api/async', {}, { traceparent });
    assert.equal((await finished(service, await submitted(response))).status, 'complete');
    await collector.until((spans) => spans.some(({ traceId, name }) => traceId === id && name === 'sign'));
    const { root, children } = await traceOf(id);
    assert.equal(root.attributes['http.response.status_code'], 202);
    const [call] = callsOf(children);
    assert.equal(call?.parentId, root.spanId);
    assert.equal(upstream.requests[0]?.headers.traceparent, `00-${id}-${call?.spanId}-01`);
  });

  it('has what contracts ask for under the request that brought it', async () => {
    const { id, traceparent } = newTrace();
    const ask = new Interface(['function ask(bytes32, string)']);
    const data = ask.encodeFunctionData('ask', [service.ids['api/plain'], '{}']);
    const url = `${service.url}/ccip/0x${'5e'.repeat(20)}/${data}.json`;
    assert.equal((await fetch(url, { headers: { traceparent } })).status, 200);
    const { root, children } = await traceOf(id);
    const of = [root.name, root.parentId, root.attributes['sdp.endpoint']];
    assert.deepEqual(of, ['GET /ccip/:sender/:data.json', '00f067aa0ba902b7', undefined]);
    const asked = children.find(({ name }) => name === 'ask') ?? assert.fail('a span of what was asked for');
    const { 'sdp.endpoint': endpoint, 'http.response.status_code': status } = asked.attributes;
    assert.deepEqual([asked.parentId, asked.kind, endpoint, status], [root.spanId, 'internal', 'plain', 200]);
    assert.equal(callsOf(children)[0]?.parentId, asked.spanId);
  });

  it('has a span for what no endpoint serves, and none for the probes', async () => {
    const [lost, probe] = [newTrace(), newTrace()];
    await fetch(`${service.url}/secret/path`, { headers: { traceparent: lost.traceparent } });
    await fetch(`${service.url}/health`, { headers: { traceparent: probe.traceparent } });
    const { root } = await traceOf(lost.id);
    assert.deepEqual([root.name, root.attributes['http.response.status_code']], ['GET (no route)', 404]);
    await askTraced('plain');
    assert.ok(!collector.spans.some(({ traceId }) => traceId === probe.id));
  });

  it('says once that a collector does not take spans, goes on, and says when it does again', async () => {
    collector.answer(400);
    const said = () => {
      const lines = service.logs.filter(({ message }) => /^spans are/.test(message));
      return lines.map(({ level, message, fields }) => [level, message, fields]);
    };
    const asked = collector.requests.length;
    for (const count of [1, 2]) {
      assert.equal((await service.post('api/plain', {})).status, 200);
      await collector.until(() => collector.requests.length >= asked + count);
    }
    collector.answer(200);
    await askTraced('plain');
    await eventually(() => said().length >= 2);
    const [[level, message, fields] = [], again, ...rest] = said();
    assert.deepEqual([level, message, fields], ['warn', 'spans are not exported', { error: '400 Bad Request' }]);
    assert.deepEqual([again, rest], [['info', 'spans are exported again', { lost: collector.refused() }], []]);
  });
});
