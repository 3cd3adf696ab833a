/** The OpenAPI document of a service is valid, and describes what it answers. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { runCli } from '../cli/run.ts';
import { finished, submitted } from '../support/async.ts';
import { JSON_HEADERS } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { honest } from '../support/reclaim.ts';
import { serviceFor } from '../support/service.ts';
import { faults, type Handler, upstreamFor } from '../support/upstream.ts';
import { apisAt } from './apis.ts';
import { assertValid, Described, describedAt } from './document.ts';

/** Answers when it is told to. */
class Held {
  release: () => void = () => undefined;
  readonly #released = new Promise<void>((resolve) => {
    this.release = resolve;
  });
  readonly handler: Handler = async (...request) => {
    await this.#released;
    await faults.json({ price: 1 })(...request);
  };
}

/** Refuses one value of a parameter. */
const PICKY = `export default { name: '<name>', hooks: { onHttpRequest({ parameters }) {
  if (parameters.symbol === 'DROP') throw new Error('no');
} } };`;

describe('the OpenAPI document of a running service', async () => {
  const pathOf = (endpoint: string) => `/endpoints/${service.ids[endpoint]}`;

  const upstream = await upstreamFor(suite, { '*': faults.json({ price: 12.5 }), '/gateway': honest });
  const proof = { type: 'reclaim', gatewayUrl: `${upstream.url}/gateway` };
  const settings = { openapi: true, proof, plugins: [{ source: './picky.mjs' }] };
  const files = { 'picky.mjs': PICKY };
  const service = await serviceFor(suite, { settings, apis: apisAt(upstream.url) }, { files });
  const response = await fetch(`${service.url}/openapi.json`);
  assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/json']);
  const described = new Described(await response.json());

  it('is valid OpenAPI 3.1', async () => {
    assert.equal(described.at('openapi'), '3.1.0');
    assert.deepEqual(described.at('servers'), [{ url: '/' }]);
    await assertValid(described);
  });

  it('is what the command line prints for the same file', async (t) => {
    const { code, stdout, stderr } = await runCli(t, ['openapi', '-c', join(service.folder, 'config.yaml')]);
    assert.equal(code, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), described.at());
  });

  it('has a path for every endpoint, for polling and for health', () => {
    const paths = [...Object.keys(service.ids).map(pathOf), '/health', '/ready', '/requests/{requestId}'];
    assert.deepEqual(Object.keys(described.at('paths') as object), paths);
  });

  it('names an operation after its API and endpoint', () => {
    const operation = described.at('paths', pathOf('open/encoded'), 'post') as Record<string, unknown>;
    const { operationId, summary, description, tags } = operation;
    assert.deepEqual([operationId, summary, description, tags], ['open_encoded', 'open/encoded', 'A price', ['open']]);
    assert.deepEqual(described.at('tags'), [
      { name: 'open', description: 'Endpoints that ask the API open' },
      { name: 'closed', description: 'Endpoints that ask the API closed' },
      { name: 'service', description: 'About the service, and what it is doing' },
    ]);
  });

  it('lists the ways to authenticate in the order of the config', () => {
    const security = (endpoint: string) => described.at('paths', pathOf(endpoint), 'post', 'security');
    assert.deepEqual(security('open/raw'), []);
    assert.deepEqual(security('closed/keyed'), [{ apiKey: [] }]);
    assert.deepEqual(security('closed/paid'), [{ apiKey: [] }, { x402: [] }]);
    assert.deepEqual(security('closed/either'), [{ x402: [] }, { apiKey: [] }]);
    assert.deepEqual(security('closed/anyone'), [{ apiKey: [] }, {}]);
    assert.equal(described.at('components', 'securitySchemes', 'apiKey', 'name'), 'X-Api-Key');
    assert.equal(described.at('components', 'securitySchemes', 'x402', 'name'), 'X-Payment-Proof');
  });

  it('describes the parameters that a client may give, and no others', () => {
    const schema = ['requestBody', 'content', 'application/json', 'schema', 'properties', 'parameters'];
    const parameters = (endpoint: string) => described.at('paths', pathOf(endpoint), 'post', ...schema);
    const type = ['string', 'number', 'boolean'];
    assert.deepEqual(parameters('open/encoded'), {
      type: 'object',
      description: 'Parameters that are not listed are ignored',
      required: ['symbol'],
      properties: { symbol: { type, description: 'Which asset' }, currency: { type, default: 'usd' }, realm: { type } },
      additionalProperties: true,
    });
    assert.deepEqual(Reflect.get(parameters('open/chosen') as object, 'required'), ['_type', '_path', '_times']);
  });

  it('accepts the requests that the service accepts, and refuses what it refuses', () => {
    const faultsOf = (endpoint: string, parameters: unknown) => {
      return described.requestFaults(pathOf(endpoint), parameters === undefined ? {} : { parameters });
    };
    const good: [string, unknown][] = [
      ['open/raw', undefined],
      ['open/raw', { unknown: {} }],
      ['open/encoded', { symbol: 1, currency: 'eur' }],
      ['open/later', { input: [{ nested: null }] }],
      ['open/form', { input: 'ETH' }],
      ['open/chosen', { _type: 'uint256', _path: '$.price', _times: 1 }],
      ['open/chosen', { _type: 'uint256,bool, bytes', _path: '$.a,$.b,$.c', _times: '1e2,,' }],
    ];
    const bad: [string, unknown][] = [
      ['open/raw', []],
      ['open/encoded', undefined],
      ['open/encoded', {}],
      ['open/encoded', { symbol: {} }],
      ['open/later', {}],
      ['open/form', { input: ['ETH&'] }],
      ['open/form', { input: null }],
      ['open/chosen', { _type: 'uint8', _path: '$.price', _times: 1 }],
      ['open/chosen', { _type: 'bool,', _path: '$.price', _times: 1 }],
      ['open/chosen', { _type: 'bool', _path: '$.price' }],
    ];
    for (const [endpoint, parameters] of good) assert.equal(faultsOf(endpoint, parameters), '');
    for (const [endpoint, parameters] of bad)
      assert.notEqual(faultsOf(endpoint, parameters), '', JSON.stringify(parameters));
  });

  const requests: readonly [string, number, unknown, Record<string, string>?][] = [
    ['open/encoded', 200, { symbol: 'ETH' }],
    ['open/raw', 200, {}],
    ['open/chosen', 200, { _type: 'uint256', _path: '$.price', _times: 1 }],
    ['open/live', 200, {}],
    ['open/live-encoded', 200, {}],
    ['closed/keyed', 200, {}, { 'X-Api-Key': 'the-key-of-a-client' }],
    ['closed/either', 200, {}, { 'X-Api-Key': 'the-key-of-a-client' }],
    ['closed/anyone', 200, {}],
    ['open/later', 202, { input: 1 }],
    ['open/encoded', 400, {}],
    ['open/encoded', 400, 'text'],
    ['open/encoded', 400, { symbol: 'ETH', 'X-Tier': 'x', currency: '\ud800' }],
    ['open/chosen', 400, { _type: 'uint256', _times: 1 }],
    ['open/chosen', 400, { _type: 'uint8', _path: '$.price', _times: 1 }],
    ['open/later', 400, {}],
    ['open/form', 400, { input: '\ud800' }],
    ['open/form', 400, { input: null }],
    ['closed/keyed', 401, {}],
    ['closed/keyed', 401, {}, { 'X-Api-Key': 'wrong' }],
    ['closed/either', 401, {}],
    ['closed/paid', 402, {}, { 'X-Payment-Proof': '{}' }],
    ['closed/paid', 402, {}],
    ['open/encoded', 403, { symbol: 'DROP' }],
    ['open/raw', 413, 'x'.repeat(70_000)],
    ['open/raw', 415, {}, { 'Content-Type': 'text/plain' }],
  ];
  for (const [endpoint, status, parameters, headers] of requests) {
    it(`${endpoint} ${status} ${JSON.stringify(parameters).slice(0, 40)} ${Object.keys(headers ?? {})}`, async () => {
      const response = await service.post(endpoint, parameters, headers);
      assert.equal(response.status, status);
      await described.assertDescribed(pathOf(endpoint), 'post', response);
    });
  }

  it('a polled request, running, complete and failed', async () => {
    const held = new Held();
    upstream.on('/later', held.handler);
    const record = await submitted(await service.post('open/later', { input: 1 }));
    const poll = async (pollUrl: string) => {
      const text = await described.assertDescribed('/requests/{requestId}', 'get', await fetch(service.url + pollUrl));
      const { status }: { status: string } = JSON.parse(text);
      return status;
    };
    assert.match(await poll(record.pollUrl), /^(pending|processing)$/);
    held.release();
    await finished(service, record);
    assert.equal(await poll(record.pollUrl), 'complete');
    upstream.on('/later', faults.serverError());
    const ends = { 'open/later-encoded': 'complete', 'open/later': 'failed' };
    for (const [endpoint, status] of Object.entries(ends)) {
      const record = await submitted(await service.post(endpoint, { input: 1 }));
      await finished(service, record);
      assert.equal(await poll(record.pollUrl), status);
    }
    const unknown = await fetch(`${service.url}/requests/0x${'0'.repeat(64)}`);
    assert.equal(unknown.status, 404);
    await described.assertDescribed('/requests/{requestId}', 'get', unknown);
  });

  it('what a failing upstream leads to', async () => {
    const answers = [faults.serverError(), faults.empty(204), faults.json({ other: 1 })];
    for (const answer of answers) {
      upstream.on('/encoded', answer);
      const response = await service.post('open/encoded', { symbol: 'ETH' });
      assert.equal(response.status, 502);
      await described.assertDescribed(pathOf('open/encoded'), 'post', response);
    }
  });

  it('an answer with a TLS proof', async () => {
    const response = await service.post('open/proven');
    const text = await described.assertDescribed(pathOf('open/proven'), 'post', response);
    assert.ok(text.includes('"proof":{"claim":'), text);
  });

  it('health, and an endpoint that is gone', async () => {
    await described.assertDescribed('/health', 'get', await fetch(`${service.url}/health`));
    await described.assertDescribed('/ready', 'get', await fetch(`${service.url}/ready`));
    const url = `${service.url}/endpoints/0x${'0'.repeat(64)}`;
    const gone = await fetch(url, { method: 'POST', headers: JSON_HEADERS, body: '{}' });
    assert.equal(gone.status, 404);
    await described.assertDescribed(pathOf('open/raw'), 'post', gone);
  });
});

describe('the OpenAPI document of a busy service', () => {
  it('describes what a client gets that waits in vain for a slot', async (t) => {
    const held = new Held();
    const upstream = await upstreamFor(t, { '/keyed': held.handler });
    const settings = { openapi: true, maxConcurrentApiCalls: 1 };
    const service = await serviceFor(t, { settings, apis: apisAt(upstream.url, 50) });
    const described = await describedAt(service);
    const first = service.post('closed/keyed', {}, { 'X-Api-Key': 'the-key-of-a-client' });
    await upstream.untilRequested('/keyed');
    const second = await service.post('open/raw');
    held.release();
    assert.deepEqual([second.status, (await first).status], [503, 200]);
    await described.assertDescribed(`/endpoints/${service.ids['open/raw']}`, 'post', second);
  });
});
