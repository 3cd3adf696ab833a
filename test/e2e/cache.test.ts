/** A cached answer is served for its time, to equal requests alone. */

import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { served } from '../support/served.ts';
import { encoding, oneApi, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults, type Handler } from '../support/upstream.ts';
import { verifyEncoded, verifyRaw } from '../support/verify.ts';
import { eventually } from '../support/wait.ts';

describe('the cache', async () => {
  let asked = 0;

  // Every answer is another one.
  const another: Handler = (...request) => {
    asked += 1;
    return faults.json({ price: asked })(...request);
  };
  const parameters = [
    { name: 'q' },
    { name: 'limit', default: 5 },
    { name: 'key', in: 'header', secret: true },
    { name: 'pinned', fixed: 'yes' },
  ];
  const body = [{ name: 'v', in: 'body' }];
  const endpoints = {
    encoded: { parameters, encoding },
    twin: { parameters, encoding },
    body: { parameters: body, method: 'POST' },
    wild: { encoding: { type: '*', path: '$.price', times: '*' } },
    pinned: { encoding },
    keyed: { auth: { type: 'apiKey', keys: ['k'] } },
    short: { cache: { maxAge: 30 } },
    month: { cache: { maxAge: 2_147_483_648 } },
    forever: { cache: { maxAge: 1e300 } },
    failing: { path: '/failing' },
    none: { encoding: { type: 'uint256', path: '$.none' } },
  };
  const { upstream, service, post, refused } = await served(suite, endpoints, {
    answers: { '*': another },
    api: { cache: { maxAge: 600_000 } },
  });

  beforeEach(() => {
    upstream.requests.length = 0;
  });

  const text = async (...asking: Parameters<typeof post>) => {
    const response = await post(...asking);
    const body = await response.text();
    assert.equal(response.status, 200, body);
    return body;
  };

  it('repeats the identical answer: signature, timestamp, bytes; with a request id of its own', async () => {
    const first = await service.post('api/encoded', { q: 'same' });
    const body = await first.text();
    await verifyEncoded(JSON.parse(body), TEST_ADDRESS);
    for (let i = 0; i < 5; i++) {
      const again = await service.post('api/encoded', { q: 'same' });
      assert.equal(await again.text(), body);
      assert.notEqual(again.headers.get('x-request-id'), first.headers.get('x-request-id'));
      assert.equal(again.headers.get('content-type'), 'application/json');
    }
    assert.equal(upstream.requests.length, 1);
  });

  it('leaves alone the endpoints of a service that have none beside one that has', async (t) => {
    const mixed = oneApi(upstream.url, { kept: { cache: { maxAge: 600_000 } }, fresh: {} });
    const other = await serviceFor(t, mixed);
    for (const endpoint of ['kept', 'kept', 'fresh', 'fresh']) {
      const { status, headers } = await other.post(`api/${endpoint}`);
      assert.deepEqual([status, headers.has('cache-status')], [200, endpoint === 'kept']);
    }
    assert.equal(upstream.requests.length, 3);
  });

  it('says in `Cache-Status` what came from it, and for how many seconds more (RFC 9211)', async () => {
    const status = async (endpoint: string, q: string) =>
      (await service.post(`api/${endpoint}`, { q })).headers.get('cache-status');
    assert.equal(await status('encoded', 'status'), 'signed-data-proxy; fwd=miss');
    assert.match((await status('encoded', 'status')) ?? '', /^signed-data-proxy; hit; ttl=5\d\d$/);
    // An error is no answer.
    assert.equal(await status('none', 'status'), null);
  });

  it('keeps an answer for any time, longer than a timer can wait', async () => {
    const kept = [
      ['month', /; hit; ttl=21474\d\d$/],
      ['forever', /; hit; ttl=90071992547\d\d$/],
    ] as const;
    for (const [endpoint, status] of kept) {
      const body = await text(endpoint);
      const again = await service.post(`api/${endpoint}`);
      assert.match(again.headers.get('cache-status') ?? '', status);
      assert.equal(await again.text(), body);
    }
  });

  it('the key has the resolved values: a default is the same as that value sent, undeclared names are nothing', async () => {
    const body = await text('encoded', { q: 'k', limit: 5 });
    for (const same of [
      { q: 'k' },
      { limit: 5, q: 'k' },
      { q: 'k', limit: null },
      { q: 'k', pinned: 'no' },
      { q: 'k', undeclared: Math.random(), _type: 'bool', _path: '$.x', _times: '2' },
    ]) {
      assert.equal(await text('encoded', same), body, JSON.stringify(same));
    }
    assert.equal(upstream.requests.length, 1);
  });

  it('any other value is another answer, secret ones too', async () => {
    const different = [
      ...[{}, ...['', 'x', 'X', 'x"],["', '\u0078\u0301'].map((q) => ({ q }))],
      ...[{ limit: 6 }, { key: 'a' }, { key: 'b' }].map((more) => ({ q: 'x', ...more })),
    ];
    const bodies = [];
    for (const parameters of different) bodies.push(await text('encoded', parameters));
    assert.equal(new Set(bodies).size, different.length);
    for (const [i, parameters] of different.entries()) assert.equal(await text('encoded', parameters), bodies[i]);
    assert.equal(upstream.requests.length, different.length);
  });

  it('body values by type and structure, at any depth that a request may have', async () => {
    const deep = (levels: number) => {
      let value: unknown = 1;
      for (let i = 0; i < levels; i++) value = [value];
      return value;
    };
    const scalars = [1, '1', true, 'true', null, 'null'];
    const different = [...scalars, [], {}, [1], ['1'], [[1]], { a: 1 }, { a: [1] }, deep(200), deep(254)];
    for (const v of different) {
      const body = await text('body', { v });
      assert.equal(await text('body', { v }), body);
    }
    const absent = await text('body', {});
    assert.equal(await text('body', {}), absent);
    assert.equal(upstream.requests.length, different.length + 1);
    assert.equal(await text('body', { v: { b: 2, a: 1 } }), await text('body', { v: { a: 1, b: 2 } }));
  });

  it('and the reserved parameters that the wildcards use, no others', async () => {
    const asUint = await text('wild', { _type: 'uint256', _times: '1' });
    assert.equal(await text('wild', { _type: 'uint256', _times: '1', _path: '$.x' }), asUint);
    const others = [
      await text('wild', { _type: 'int256', _times: '1' }),
      await text('wild', { _type: 'uint256', _times: '10' }),
    ];
    assert.equal(new Set([asUint, ...others]).size, 3);
    assert.equal(upstream.requests.length, 3);
    const pinned = await text('pinned', { _type: 'string' });
    assert.equal(await text('pinned', { _type: 'bool', _times: '9' }), pinned);
  });

  it('two endpoints share nothing', async () => {
    const one = JSON.parse(await text('encoded', { q: 'shared?' }));
    const two = JSON.parse(await text('twin', { q: 'shared?' }));
    assert.notEqual(one.endpointId, two.endpointId);
    assert.notEqual(one.data, two.data);
  });

  it('an answer expires, and the endpoint overrides its API', async () => {
    const first = await text('short');
    const look = async () => {
      const next = await text('short');
      return next !== first && next;
    };
    const second = await eventually(look, 'another answer');
    assert.notEqual(JSON.parse(second).signature, JSON.parse(first).signature);
    await verifyRaw(JSON.parse(second), TEST_ADDRESS);
  });

  it('failures are not kept', async () => {
    upstream.on('/failing', faults.serverError());
    for (let i = 0; i < 2; i++) await refused(502, 'API call failed', 'failing');
    assert.equal(upstream.requests.length, 2);
    upstream.json('/failing', { ok: 1 });
    assert.deepEqual(JSON.parse(await text('failing')).rawData, { ok: 1 });
    upstream.on('/failing', faults.serverError());
    assert.deepEqual(JSON.parse(await text('failing')).rawData, { ok: 1 });
    for (let i = 0; i < 2; i++) await refused(502, 'No value found at path: $.none', 'none');
    assert.equal(upstream.requests.length, 5);
  });

  it('comes after authentication and validation', async () => {
    await text('keyed', {}, { 'X-Api-Key': 'k' });
    await refused(401, 'Missing X-Api-Key header', 'keyed');
    await refused(401, 'Invalid API key', 'keyed', {}, { 'X-Api-Key': 'K' });
    await refused(400, 'Request parameters must be an object', 'keyed', null, { 'X-Api-Key': 'k' });
  });

  it('nothing went wrong on the way', async () => {
    await eventually(() => true, 'a turn');
    assert.deepEqual(
      service.logs.filter(({ level }) => level === 'error'),
      [],
    );
  });
});
