/** The line of a request has documented fields, and nothing that a client has sent. */

import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { keccak256, solidityPacked } from 'ethers';
import { assertRefused } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { pluginFile, pluginFiles } from '../support/plugin-files.ts';
import { reload } from '../support/reload.ts';
import { encoding, oneApi, type RunningService, serviceFor } from '../support/service.ts';
import { tidy } from '../support/tidy.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { eventually } from '../support/wait.ts';

const JSON_LOG = { env: { LOG_FORMAT: 'json' } };
const CLIENT_KEY = 'partner-key-0001';
const HOUR = 3_600_000;
const CHARS_OF_DETAIL = 300;

const upstream = await upstreamFor(suite);
upstream.json('/price', { price: 7 });
upstream.on('/hang', faults.hang());
upstream.on('/down', (_, response) => void response.writeHead(500).end());
const named = { type: 'apiKey', keys: [{ key: CLIENT_KEY, name: 'partner', rateLimit: { max: 1, window: HOUR } }] };
const api = (name: string, endpoints: Parameters<typeof oneApi>[1], more = {}) =>
  oneApi(upstream.url, endpoints, { api: { name, ...more } }).apis;
const asked = {
  kept: { path: '/price', encoding, cache: { maxAge: HOUR } },
  raw: { path: '/price?raw' },
  mine: { path: '/price?mine', auth: named },
  down: {},
  shape: { path: '/price?shape', encoding: { type: 'uint256', path: '$.none' } },
  later: { path: '/price?later', mode: 'async' },
};
const server = { rateLimit: { max: 1000, trustForwardedFor: 1 } };
const apis = [...api('a', asked), ...api('b', { hangs: { path: '/hang' } }, { timeout: 100 })];
const service = await serviceFor(suite, { server, apis }, JSON_LOG);

beforeEach(() => tidy(service, upstream));

const lineOf = (of: RunningService, response: Response) => {
  const requestId = response.headers.get('x-request-id');
  return eventually(() =>
    of.logs.find(({ message, fields }) => message === 'request' && fields.requestId === requestId),
  );
};

/** The line of a request, without its id and what varies: times are checked to be numbers. */
async function fieldsOf(response: Response, of = service) {
  const { level, fields } = await lineOf(of, response);
  assert.equal(level, 'info');
  const { requestId, ms, upstream: calls, ...rest } = fields;
  assert.equal(typeof ms, 'number');
  const { ms: spent, ...called } = Object(calls);
  if (calls !== undefined) assert.equal(typeof spent, 'number');
  const told = Object.entries({ ...rest, ...(calls !== undefined && { upstream: called }) });
  return Object.fromEntries(told.filter(([, value]) => value !== undefined));
}

const HERE = { address: '127.0.0.1', method: 'POST', route: '/endpoints/:endpointId' };
const endpoint = (name: string, mode = 'sync') => ({ ...HERE, endpoint: name, endpointId: service.ids[name], mode });

describe('the line of a request as JSON', () => {
  it('says what was asked, what the upstream and the cache said, and what was signed', async () => {
    const miss = await service.post('a/kept', {}, { 'X-Forwarded-For': '203.0.113.9, 192.0.2.7' });
    const { data, endpointId, timestamp } = (await miss.json()) as Record<string, string>;
    const digest = keccak256(solidityPacked(['bytes32', 'uint256', 'bytes'], [endpointId, timestamp, data]));
    const about = { ...endpoint('a/kept'), status: 200, signed: { digest, timestamp } };
    const called = { address: '192.0.2.7', cache: 'miss', upstream: { status: 200, attempts: 1 } };
    assert.deepEqual(await fieldsOf(miss), { ...about, ...called });
    assert.deepEqual(await fieldsOf(await service.post('a/kept')), { ...about, cache: 'hit' });
  });

  it('names the class of a failure and tells it in a sentence, with the attempts', async () => {
    const late = `timeout: GET ${upstream.url} failed: no complete answer within 100 ms`;
    const failures = [
      ['a/down', 'status_5xx', 'upstream status 500', 500],
      ['b/hangs', 'timeout', late, undefined],
      ['a/shape', 'encode', 'No value found at path: $.none', 200],
    ] as const;
    for (const [name, reason, detail, status] of failures) {
      const about = { status: 502, reason, detail, upstream: { status, attempts: 1 } };
      assert.deepEqual(await fieldsOf(await service.post(name)), { ...endpoint(name), ...about });
    }
  });

  it('has the ID of an unknown endpoint', async () => {
    const endpointId = `0x${'ab'.repeat(32)}`;
    const response = await fetch(`${service.url}/endpoints/${endpointId}`, { method: 'POST' });
    await assertRefused(response, 404, 'Endpoint not found');
    assert.deepEqual(await fieldsOf(response), { ...HERE, endpointId, status: 404, detail: 'Endpoint not found' });
  });

  const secret = 'patient-4711';
  const CHOICE = { _type: 'int256', _path: '$.price', _times: '1' };
  const body = { name: 'body', parameters: { who: { [secret]: 1 } } };
  const chosen = (choice: object) => ({ name: 'chosen', parameters: { ...CHOICE, ...choice } });
  const BAD_PATH = 'expected a name, an index or "*" at character 16';
  const BAD_TIMES = 'times is not a decimal number such as 100, 0.5 or 1e18';
  const NOT_FOUND = 'the path that the client has chosen finds nothing';
  const UNKNOWN = 'a parameter that the endpoint does not take';
  /** What a client asks for, what it is told, and what the line says. */
  const told = [
    [chosen({ _path: `$.${secret}` }), `No value found at path: $.${secret}`, NOT_FOUND],
    [chosen({ _path: `$.${secret}[` }), 'Invalid `_path` request parameter', BAD_PATH],
    [chosen({ _type: secret }), 'Invalid `_type` request parameter', 'a member is no type that clients may choose'],
    [chosen({ _times: secret }), 'Invalid `_times` request parameter', BAD_TIMES],
    [{ name: 'strict', parameters: { [secret]: 1 } }, `Unknown parameter: ${secret}`, UNKNOWN],
    [body, `Invalid parameter: who (/${secret} must be string)`, 'parameter "who" does not fit its schema'],
  ] as const;

  it('quotes nothing that a client has sent, though the client is told', async (t) => {
    const schema = { type: 'object', additionalProperties: { type: 'string' } };
    const endpoints = {
      chosen: { path: '/price', encoding: { type: '*', path: '*', times: '*' } },
      strict: { path: '/price?strict', strictParameters: true },
      body: { path: '/price?body', method: 'POST', parameters: [{ name: 'who', in: 'body', schema }] },
    };
    const own = await serviceFor(t, { apis: api('a', endpoints) }, JSON_LOG);
    for (const [{ name, parameters }, error, detail] of told) {
      const response = await own.post(`a/${name}`, parameters);
      assert.deepEqual(await response.json(), { error });
      assert.equal((await fieldsOf(response, own)).detail, detail);
    }
    const atInfo = own.logs.filter(({ level }) => level !== 'debug');
    assert.ok(!JSON.stringify(atInfo).includes(secret), JSON.stringify(atInfo));
  });

  it('the line of the failure has both, too', async () => {
    const requestId = (await service.post('a/down')).headers.get('x-request-id');
    const line = service.logs.find(({ level, fields }) => level === 'warn' && fields.requestId === requestId);
    const { endpoint: of, endpointId } = endpoint('a/down');
    const about = { stage: 'callApi', status: 502, reason: 'status_5xx', detail: 'upstream status 500' };
    const fields = { requestId, endpointId, endpoint: of, ...about };
    assert.deepEqual(line, { level: 'warn', message: 'API call failed', fields });
  });

  it('401 and 429 say why and to whom', async () => {
    const mine = (key: string) => service.post('a/mine', {}, { 'X-Api-Key': key });
    const refused = { ...endpoint('a/mine'), status: 401 };
    const missing = await fieldsOf(await service.post('a/mine'));
    assert.deepEqual(missing, { ...refused, detail: 'Missing X-Api-Key header' });
    assert.deepEqual(await fieldsOf(await mine('wrong')), { ...refused, detail: 'Invalid API key' });
    assert.equal((await fieldsOf(await mine(CLIENT_KEY))).client, 'partner');
    const detail = 'this client has sent more than the rateLimit of its key lets in';
    assert.deepEqual(await fieldsOf(await mine(CLIENT_KEY)), { ...refused, status: 429, client: 'partner', detail });
  });

  it('requests that reach no endpoint, and those answered later, have what there is', async () => {
    const health = await fieldsOf(await fetch(`${service.url}/health`));
    assert.deepEqual(health, { ...HERE, route: '/health', method: 'GET', status: 200 });
    const unknown = await fieldsOf(await fetch(`${service.url}/endpoints/0x12`, { method: 'POST' }));
    assert.deepEqual(unknown, { ...HERE, status: 404, detail: 'Endpoint not found' });
    assert.deepEqual(await fieldsOf(await service.post('a/later')), { ...endpoint('a/later', 'async'), status: 202 });
  });

  it('a plugin adds fields, cannot take those of the service, and a long reason is cut', async (t) => {
    const sdk = import.meta.resolve('../../plugins-sdk/index.ts');
    const files = {
      'tier.mjs': `import { ContextKey, definePlugin, Refusal } from ${JSON.stringify(sdk)};
const [tier, status] = ['tier', 'status'].map((name) => new ContextKey(name, { logged: true }));
export default definePlugin({ name: 'tier', setup: () => ({ hooks: { admit(exchange) {
  tier.set(exchange, 'gold'); status.set(exchange, 1);
  if (exchange.headers['x-long'] !== undefined) throw new Refusal(403, 'No', { reason: 'y'.repeat(301) });
} } }) });`,
    };
    const settings = { plugins: [{ source: './tier.mjs', timeout: 1000 }] };
    const own = await serviceFor(t, { settings, apis: api('a', { raw: { path: '/price' } }) }, { files, ...JSON_LOG });
    const { tier, status } = await fieldsOf(await own.post('a/raw'), own);
    assert.deepEqual([tier, status], ['gold', 200]);
    const { detail } = await fieldsOf(await own.post('a/raw', {}, { 'X-Long': '1' }), own);
    assert.equal(detail, `${'y'.repeat(CHARS_OF_DETAIL)}…`);
  });
});

describe('the line of a request as text', () => {
  const textLine = async (of: RunningService, response: Response) => {
    const requestId = response.headers.get('x-request-id');
    const line = await eventually(() =>
      of.logs.find(({ level, fields }) => level === 'info' && fields.requestId === requestId),
    );
    const { requestId: _, ...fields } = line.fields;
    return { message: line.message.replace(/[\d.]+ms$/, 'ms'), fields };
  };

  it('is short, yet says of 401 and 429 why and to whom', async (t) => {
    const auth = { type: 'apiKey', keys: ['secret-key-1'] };
    const limits = { rateLimit: { max: 2, window: HOUR } };
    const of = await serviceFor(t, { server: limits, apis: api('a', { locked: { path: '/price' } }, { auth }) });
    const { 'a/locked': endpointId } = of.ids;
    const { address } = HERE;
    assert.deepEqual(await textLine(of, await of.post('a/locked')), {
      message: 'a/locked 401 ms',
      fields: { detail: 'Missing X-Api-Key header', address, endpointId },
    });
    const answered = await of.post('a/locked', {}, { 'X-Api-Key': 'secret-key-1' });
    assert.deepEqual(await textLine(of, answered), { message: 'a/locked 200 ms', fields: { endpointId } });
    assert.deepEqual(await textLine(of, await of.post('a/locked')), {
      message: 'POST /endpoints/:endpointId 429 ms',
      fields: { detail: 'its address has sent more than server.rateLimit lets in', address },
    });
  });
});

describe('settings.log.slow', () => {
  const WAIT = 60;
  const wait = `async onBeforeApiCall() { await new Promise((resolve) => setTimeout(resolve, ${WAIT})); }`;
  const { files, plugins } = pluginFiles({ late: pluginFile('late', wait) });
  const config = (slow?: number | string) => ({
    settings: { plugins, ...(slow !== undefined && { log: { slow } }) },
    apis: api('a', { raw: { path: '/price' } }),
  });
  const slowLines = (of: RunningService) => of.logs.filter(({ message }) => message === 'slow request');

  it('warns of requests that took longer, with where the time went; a reload changes it', async (t) => {
    const of = await serviceFor(t, config('20ms'), { files });
    const requestId = (await of.post('a/raw')).headers.get('x-request-id');
    const some = () => (slowLines(of).length > 0 ? slowLines(of) : undefined);
    const [line, ...others] = await eventually(some, 'the line');
    assert.deepEqual(others, []);
    assert.equal(line?.level, 'warn');
    const { ms, spent, ...fields } = line?.fields ?? {};
    assert.deepEqual(fields, { requestId, endpoint: 'a/raw' });
    const parts = Array.from(String(spent).split(', '), (part) => part.split(' '));
    assert.ok(Number(Object.fromEntries(parts).onBeforeApiCall) >= WAIT - 1, String(spent));
    for (const [, time] of parts) assert.ok(Number(time) >= 1 && Number(time) <= Number(ms), `${spent} of ${ms}`);

    for (const slow of ['1h', undefined]) {
      assert.equal((await reload(of, config(slow))).done, true);
      of.logs.length = 0;
      const id = (await of.post('a/raw')).headers.get('x-request-id');
      await eventually(() => of.logs.find(({ level, fields }) => level === 'info' && fields.requestId === id), 'it');
      assert.deepEqual(slowLines(of), []);
    }
  });
});
