/** The upstream receives the configured request, and nothing else of the client. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what stands in a config file

import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { oneApi, serviceFor } from '../support/service.ts';
import { faults, type RecordedRequest, upstreamFor } from '../support/upstream.ts';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

const inHeader = (name: string, more = {}) => ({ name, in: 'header', ...more });
const b = { name: 'b', in: 'body' };
const accept = inHeader('Accept', { default: 'application/vnd.api+json' });
const endpoints = {
  plain: {},
  ...Object.fromEntries(METHODS.map((method) => [`bare-${method}`, { method }])),
  ...Object.fromEntries(METHODS.map((method) => [`full-${method}`, { method, parameters: [b] }])),
  overridden: {
    parameters: [accept, ...['authorization', 'X-TIER', 'User-Agent', 'X-Own'].map((name) => inHeader(name))],
  },
  'own-type': {
    method: 'POST',
    parameters: [b, inHeader('Content-Type', { fixed: 'application/merge-patch+json' })],
  },
  none: { path: '' },
  'no-slash': { path: 'no-slash' },
  'only-query': { path: '?a=1', parameters: [{ name: 'q' }] },
};

describe('what the upstream receives', async () => {
  const upstream = await upstreamFor(suite);
  upstream.on('*', faults.json({ value: 7 }));
  const headers = { Authorization: 'Bearer ${TOKEN}', 'x-tier': 'gold' };

  const config = oneApi(`${upstream.url}/v1/base`, endpoints, { api: { headers } });
  const service = await serviceFor(suite, config, { env: { TOKEN: 'Zm9v' } });
  const short = { e: {}, none: { path: '' }, bare: { path: 'bare' } };
  const slashed = await serviceFor(suite, oneApi(`${upstream.url}/v1/`, short));

  beforeEach(() => {
    upstream.requests.length = 0;
  });

  const ask = async (endpoint: string, parameters?: unknown, from = service): Promise<RecordedRequest> => {
    const response = await from.post(`api/${endpoint}`, parameters);
    assert.equal(response.status, 200, await response.clone().text());
    return upstream.requests.at(-1) ?? assert.fail('the upstream was not asked');
  };

  it('the path is appended to the URL, whose own path stays', async () => {
    assert.equal((await ask('plain')).path, '/v1/base/plain');
    assert.equal((await ask('none')).path, '/v1/base');
    assert.equal((await ask('no-slash')).path, '/v1/base/no-slash');
    assert.equal((await ask('only-query')).path, '/v1/base?a=1');
    assert.equal((await ask('only-query', { q: 2 })).path, '/v1/base?a=1&q=2');
  });

  it('a trailing slash of the URL is not doubled', async () => {
    assert.equal((await ask('e', {}, slashed)).path, '/v1/e');
    assert.equal((await ask('none', {}, slashed)).path, '/v1');
    assert.equal((await ask('bare', {}, slashed)).path, '/v1/bare');
  });

  it('the method is GET unless configured, and a body goes with any method that has body parameters', async () => {
    assert.equal((await ask('plain')).method, 'GET');
    for (const method of METHODS) {
      const bare = await ask(`bare-${method}`);
      assert.deepEqual([bare.method, bare.body, bare.headers['content-type']], [method, '', undefined]);
      const { body, headers, method: by } = await ask(`full-${method}`, { b: [1] });
      const { 'content-type': type, 'content-length': length } = headers;
      assert.deepEqual([by, body, type, length], [method, '{"b":[1]}', 'application/json', '9']);
    }
  });

  it('the headers of the API go with every request, values from variables included', async () => {
    const { headers, rawHeaders } = await ask('plain');
    const { authorization, 'x-tier': tier, accept, 'user-agent': agent, host } = headers;
    const own = ['application/json', 'signed-data-proxy', new URL(upstream.url).host];
    assert.deepEqual([authorization, tier, accept, agent, host], ['Bearer Zm9v', 'gold', ...own]);
    assert.equal(rawHeaders.filter((_, i) => i % 2 === 0).length, Object.keys(headers).length, 'none twice');
  });

  it("nothing of the client's own headers goes upstream", async () => {
    const secret = { 'X-Api-Key': 'k', Cookie: 'c=1', Referer: 'http://x/', 'X-Own': 'client' };
    const response = await service.post('api/plain', {}, { ...secret, 'X-Forwarded-For': '1.2.3.4' });
    assert.equal(response.status, 200);
    const names = Object.keys(upstream.requests.at(-1)?.headers ?? {}).sort();
    assert.equal(names.join(), 'accept,accept-encoding,authorization,connection,host,user-agent,x-tier');
  });

  it('API headers win over a header parameter of the same name in any case', async () => {
    const given = { authorization: 'mine', 'X-TIER': 'mine', 'User-Agent': 'mine', 'X-Own': 'mine' };
    const { headers, rawHeaders } = await ask('overridden', given);
    assert.equal(headers.authorization, 'Bearer Zm9v');
    assert.equal(headers['x-tier'], 'gold');
    assert.deepEqual(rawHeaders.filter((text) => text === 'mine').length, 2);
    assert.deepEqual([headers['x-own'], headers['user-agent']], ['mine', 'mine']);
    assert.equal(rawHeaders.filter((_, i) => i % 2 === 0).length, Object.keys(headers).length, 'none twice');
  });

  it("header parameters win over the service's own headers", async () => {
    assert.equal((await ask('overridden')).headers.accept, 'application/vnd.api+json');
    const typed = await ask('own-type', { b: 1 });
    assert.equal(typed.headers['content-type'], 'application/merge-patch+json');
    assert.equal(typed.body, '{"b":1}');
  });
});

describe('the configured URL, path and headers', () => {
  it('`path` is percent-encoded where it has to be', async (t) => {
    const upstream = await upstreamFor(t, { '*': faults.json(1) });
    const parameters = [{ name: 'id', in: 'path', fixed: 'é' }];
    const service = await serviceFor(t, oneApi(upstream.url, { e: { path: '/ü/{id}?q=€"', parameters } }));
    assert.equal((await service.post('api/e')).status, 200);
    assert.equal(upstream.requests[0]?.path, '/%C3%BC/%C3%A9?q=%E2%82%AC%22');
  });
});
