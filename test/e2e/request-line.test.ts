/** The line of a request has documented fields, and nothing that a client has sent. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it, type TestContext } from 'node:test';
import { keccak256, solidityPacked } from 'ethers';
import { assertRefused, eventually } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { pluginFile, pluginFiles } from '../support/plugin-files.ts';
import { reload } from '../support/reload.ts';
import { type RunningService, serviceFor } from '../support/service.ts';
import { tidy } from '../support/tidy.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const JSON_LOG = { env: { LOG_FORMAT: 'json' } };
const CLIENT_KEY = 'partner-key-0001';
const HOUR = 3_600_000;
const CHARS_OF_DETAIL = 300;

const upstream = await upstreamFor(suite);
upstream.json('/price', { price: 7 });
upstream.on('/hang', faults.hang());
upstream.on('/down', (_, response) => void response.writeHead(500).end());
const encoding = { type: 'uint256', path: '$.price' };
const named = { type: 'apiKey', keys: [{ key: CLIENT_KEY, name: 'partner', rateLimit: { max: 1, window: HOUR } }] };
const service = await serviceFor(
  suite,
  {
    server: { rateLimit: { max: 1000, trustForwardedFor: 1 } },
    apis: [
      {
        name: 'a',
        url: upstream.url,
        auth: { type: 'free' },
        endpoints: [
          { name: 'kept', path: '/price', encoding, cache: { maxAge: HOUR } },
          { name: 'raw', path: '/price?raw' },
          { name: 'mine', path: '/price?mine', auth: named },
          { name: 'down', path: '/down' },
          { name: 'shape', path: '/price?shape', encoding: { type: 'uint256', path: '$.none' } },
          { name: 'later', path: '/price?later', mode: 'async' },
        ],
      },
      {
        name: 'b',
        url: upstream.url,
        timeout: 100,
        auth: { type: 'free' },
        endpoints: [{ name: 'hangs', path: '/hang' }],
      },
    ],
  },
  JSON_LOG,
);

beforeEach(() => tidy(service, upstream));

const lineOf = (of: RunningService, response: Response) => {
  const requestId = response.headers.get('x-request-id');
  return eventually(
    () => of.logs.find(({ message, fields }) => message === 'request' && fields.requestId === requestId),
    'the line of the request',
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

const endpoint = (name: string, mode = 'sync', api = 'a') => ({
  endpoint: `${api}/${name}`,
  endpointId: service.ids[`${api}/${name}`],
  route: '/endpoints/:endpointId',
  method: 'POST',
  mode,
});
const HERE = { address: '127.0.0.1' };

describe('the line of a request as JSON', () => {
  it('says what was asked, what the upstream and the cache said, and what was signed', async () => {
    const miss = await service.post('a/kept', {}, { 'X-Forwarded-For': '203.0.113.9, 192.0.2.7' });
    const { data, endpointId, timestamp } = (await miss.json()) as Record<string, string>;
    const digest = keccak256(solidityPacked(['bytes32', 'uint256', 'bytes'], [endpointId, timestamp, data]));
    const about = { ...endpoint('kept'), status: 200, signed: { digest, timestamp } };
    assert.deepEqual(await fieldsOf(miss), {
      ...about,
      address: '192.0.2.7',
      cache: 'miss',
      upstream: { status: 200, attempts: 1 },
    });
    assert.deepEqual(await fieldsOf(await service.post('a/kept')), { ...about, ...HERE, cache: 'hit' });
  });

  it('names the class of a failure and tells it in a sentence, with the attempts', async () => {
    assert.deepEqual(await fieldsOf(await service.post('a/down')), {
      ...endpoint('down'),
      ...HERE,
      status: 502,
      reason: 'status_5xx',
      detail: 'upstream status 500',
      upstream: { status: 500, attempts: 1 },
    });
    assert.deepEqual(await fieldsOf(await service.post('b/hangs')), {
      ...endpoint('hangs', 'sync', 'b'),
      ...HERE,
      status: 502,
      reason: 'timeout',
      detail: `timeout: GET ${upstream.url} failed: no complete answer within 100 ms`,
      upstream: { status: undefined, attempts: 1 },
    });
    assert.deepEqual(await fieldsOf(await service.post('a/shape')), {
      ...endpoint('shape'),
      ...HERE,
      status: 502,
      reason: 'encode',
      detail: 'No value found at path: $.none',
      upstream: { status: 200, attempts: 1 },
    });
  });

  it('has the ID of an unknown endpoint', async () => {
    const endpointId = `0x${'ab'.repeat(32)}`;
    const response = await fetch(`${service.url}/endpoints/${endpointId}`, { method: 'POST' });
    await assertRefused(response, 404, 'Endpoint not found');
    assert.deepEqual(await fieldsOf(response), {
      ...HERE,
      endpointId,
      route: '/endpoints/:endpointId',
      method: 'POST',
      status: 404,
      detail: 'Endpoint not found',
    });
  });

  const secret = 'patient-4711';
  const chosen = { _type: 'int256', _path: '$.price', _times: '1' };
  /** Of an endpoint, what a client sends, what it is told, and what the line says. */
  const told = [
    [
      'chosen',
      { ...chosen, _path: `$.${secret}` },
      `No value found at path: $.${secret}`,
      'the path that the client has chosen finds nothing',
    ],
    [
      'chosen',
      { ...chosen, _path: `$.${secret}[` },
      'Invalid `_path` request parameter',
      'expected a name, an index or "*" at character 16',
    ],
    [
      'chosen',
      { ...chosen, _type: secret },
      'Invalid `_type` request parameter',
      'a member is no type that clients may choose',
    ],
    [
      'chosen',
      { ...chosen, _times: secret },
      'Invalid `_times` request parameter',
      'times is not a decimal number such as 100, 0.5 or 1e18',
    ],
    ['strict', { [secret]: 1 }, `Unknown parameter: ${secret}`, 'a parameter that the endpoint does not take'],
    [
      'body',
      { who: { [secret]: 1 } },
      `Invalid parameter: who (/${secret} must be string)`,
      'parameter "who" does not fit its schema',
    ],
  ] as const;

  it('quotes nothing that a client has sent, though the client is told', async (t) => {
    const schema = { type: 'object', additionalProperties: { type: 'string' } };
    const own = await serviceFor(
      t,
      {
        apis: [
          {
            name: 'a',
            url: upstream.url,
            auth: { type: 'free' },
            endpoints: [
              { name: 'chosen', path: '/price', encoding: { type: '*', path: '*', times: '*' } },
              { name: 'strict', path: '/price?strict', strictParameters: true },
              {
                ...{ name: 'body', path: '/price?body', method: 'POST' },
                parameters: [{ name: 'who', in: 'body', schema }],
              },
            ],
          },
        ],
      },
      JSON_LOG,
    );
    for (const [name, parameters, error, detail] of told) {
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
    const { endpoint: of, endpointId } = endpoint('down');
    assert.deepEqual(line, {
      level: 'warn',
      message: 'API call failed',
      fields: {
        requestId,
        endpointId,
        endpoint: of,
        stage: 'callApi',
        status: 502,
        reason: 'status_5xx',
        detail: 'upstream status 500',
      },
    });
  });

  it('401 and 429 say why and to whom', async () => {
    assert.deepEqual(await fieldsOf(await service.post('a/mine')), {
      ...endpoint('mine'),
      ...HERE,
      status: 401,
      detail: 'Missing X-Api-Key header',
    });
    assert.deepEqual(await fieldsOf(await service.post('a/mine', {}, { 'X-Api-Key': 'wrong' })), {
      ...endpoint('mine'),
      ...HERE,
      status: 401,
      detail: 'Invalid API key',
    });
    const mine = () => service.post('a/mine', {}, { 'X-Api-Key': CLIENT_KEY });
    assert.equal((await fieldsOf(await mine())).client, 'partner');
    assert.deepEqual(await fieldsOf(await mine()), {
      ...endpoint('mine'),
      ...HERE,
      status: 429,
      client: 'partner',
      detail: 'this client has sent more than the rateLimit of its key lets in',
    });
  });

  it('requests that reach no endpoint, and those answered later, have what there is', async () => {
    assert.deepEqual(await fieldsOf(await fetch(`${service.url}/health`)), {
      route: '/health',
      method: 'GET',
      status: 200,
      ...HERE,
    });
    assert.deepEqual(await fieldsOf(await fetch(`${service.url}/endpoints/0x12`, { method: 'POST' })), {
      route: '/endpoints/:endpointId',
      method: 'POST',
      status: 404,
      detail: 'Endpoint not found',
      ...HERE,
    });
    assert.deepEqual(await fieldsOf(await service.post('a/later')), {
      ...endpoint('later', 'async'),
      status: 202,
      ...HERE,
    });
  });

  it('a plugin adds fields, cannot take those of the service, and a long reason is cut', async (t) => {
    const sdk = import.meta.resolve('../../plugins-sdk/index.ts');
    const body = `tier.set(exchange, 'gold'); status.set(exchange, 1);`;
    const files = {
      'tier.mjs': `import { ContextKey, definePlugin, Refusal } from ${JSON.stringify(sdk)};
const [tier, status] = ['tier', 'status'].map((name) => new ContextKey(name, { logged: true }));
export default definePlugin({ name: 'tier', setup: () => ({ hooks: { admit(exchange) {
  ${body}
  if (exchange.headers['x-long'] !== undefined) throw new Refusal(403, 'No', { reason: 'y'.repeat(301) });
} } }) });`,
    };
    const own = await serviceFor(
      t,
      {
        settings: { plugins: [{ source: './tier.mjs', timeout: 1000 }] },
        apis: [{ name: 'a', url: upstream.url, auth: { type: 'free' }, endpoints: [{ name: 'raw', path: '/price' }] }],
      },
      { files, ...JSON_LOG },
    );
    const { tier, status } = await fieldsOf(await own.post('a/raw'), own);
    assert.deepEqual([tier, status], ['gold', 200]);
    const { detail } = await fieldsOf(await own.post('a/raw', {}, { 'X-Long': '1' }), own);
    assert.equal(detail, `${'y'.repeat(CHARS_OF_DETAIL)}…`);
  });
});

describe('the line of a request as text', () => {
  const start = async (t: TestContext, settings: object = {}, rateLimit = 1000) => {
    return await serviceFor(t, {
      server: { rateLimit: { max: rateLimit, window: HOUR } },
      settings,
      apis: [
        {
          name: 'a',
          url: upstream.url,
          auth: { type: 'apiKey', keys: ['secret-key-1'] },
          endpoints: [{ name: 'locked', path: '/price' }],
        },
      ],
    });
  };
  const textLine = async (of: RunningService, response: Response) => {
    const requestId = response.headers.get('x-request-id');
    const line = await eventually(
      () => of.logs.find(({ level, fields }) => level === 'info' && fields.requestId === requestId),
      'the line of the request',
    );
    return { message: line.message.replace(/[\d.]+ms$/, 'ms'), fields: line.fields };
  };

  it('is short, yet says of 401 and 429 why and to whom', async (t) => {
    const of = await start(t, {}, 2);
    const endpointId = of.ids['a/locked'];
    const refused = await of.post('a/locked');
    const requestId = refused.headers.get('x-request-id');
    assert.deepEqual(await textLine(of, refused), {
      message: 'a/locked 401 ms',
      fields: { requestId, detail: 'Missing X-Api-Key header', address: '127.0.0.1', endpointId },
    });
    const answered = await of.post('a/locked', {}, { 'X-Api-Key': 'secret-key-1' });
    assert.deepEqual(await textLine(of, answered), {
      message: 'a/locked 200 ms',
      fields: { requestId: answered.headers.get('x-request-id'), endpointId },
    });
    const limited = await of.post('a/locked');
    const { message, fields } = await textLine(of, limited);
    assert.equal(message, 'POST /endpoints/:endpointId 429 ms');
    const detail = 'its address has sent more than server.rateLimit lets in';
    assert.deepEqual(fields, { requestId: limited.headers.get('x-request-id'), detail, address: '127.0.0.1' });
  });
});

describe('settings.log.slow', () => {
  const WAIT = 60;
  const { files, plugins } = pluginFiles({
    late: pluginFile(
      'late',
      `async onBeforeApiCall() { await new Promise((resolve) => setTimeout(resolve, ${WAIT})); }`,
    ),
  });
  const config = (slow?: number | string) => ({
    settings: { plugins, ...(slow !== undefined && { log: { slow } }) },
    apis: [{ name: 'a', url: upstream.url, auth: { type: 'free' }, endpoints: [{ name: 'raw', path: '/price' }] }],
  });
  const slowLines = (of: RunningService) => of.logs.filter(({ message }) => message === 'slow request');

  it('warns of requests that took longer, with where the time went; a reload changes it', async (t) => {
    const of = await serviceFor(t, config('20ms'), { files });
    const requestId = (await of.post('a/raw')).headers.get('x-request-id');
    const [line, ...others] = await eventually(
      () => (slowLines(of).length > 0 ? slowLines(of) : undefined),
      'the line',
    );
    assert.deepEqual(others, []);
    assert.equal(line?.level, 'warn');
    const { ms, spent, ...fields } = line?.fields ?? {};
    assert.deepEqual(fields, { requestId, endpoint: 'a/raw' });
    const parts: Readonly<Record<string, number>> = Object(spent);
    assert.ok(Number(parts.onBeforeApiCall) >= WAIT - 1, JSON.stringify(parts));
    const sum = Object.values(parts).reduce((total, part) => total + part, 0);
    assert.ok(sum <= Number(ms) + 0.1 && sum > Number(ms) - 20, `${JSON.stringify(parts)} of ${ms}`);

    for (const slow of ['1h', undefined]) {
      assert.equal((await reload(of, config(slow))).done, true);
      of.logs.length = 0;
      const { headers } = await of.post('a/raw');
      const id = headers.get('x-request-id');
      await eventually(
        () => of.logs.find(({ level, fields: { requestId: is } }) => level === 'info' && is === id),
        'it',
      );
      assert.deepEqual(slowLines(of), []);
    }
  });
});
