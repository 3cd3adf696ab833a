/** A cached answer is served for its time, to equal requests alone. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { oneApi } from '../support/answers.ts';
import { assertRefused, eventually } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { serviceFor, startTestService } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded, verifyRaw } from '../support/verify.ts';

describe('the cache', async () => {
  let asked = 0;

  const upstream = await upstreamFor(suite);
  // Every answer is another one.
  upstream.on('*', (req, res, recorded) => {
    asked += 1;
    return faults.json({ price: asked })(req, res, recorded);
  });
  const parameters = [
    { name: 'q' },
    { name: 'limit', default: 5 },
    { name: 'key', in: 'header', secret: true },
    { name: 'pinned', fixed: 'yes' },
  ];
  const encoding = { type: 'uint256', path: '$.price' };
  const body = [{ name: 'v', in: 'body' }];
  const service = await serviceFor(
    suite,
    oneApi(
      upstream.url,
      {
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
      },
      { api: { cache: { maxAge: 600_000 } } },
    ),
  );

  beforeEach(() => {
    upstream.requests.length = 0;
  });

  const text = async (endpoint: string, parameters?: unknown, headers?: Record<string, string>) => {
    const response = await service.post(`api/${endpoint}`, parameters, headers);
    const body = await response.text();
    assert.equal(response.status, 200, body);
    return body;
  };
  const verifies = (body: string) => verifyEncoded(JSON.parse(body), service.signer.address);

  it('repeats the identical answer: signature, timestamp, bytes; with a request id of its own', async () => {
    const first = await service.post('api/encoded', { q: 'same' });
    const body = await first.text();
    await verifies(body);
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
      {},
      { q: '' },
      { q: 'x' },
      { q: 'x', limit: 6 },
      { q: 'x', key: 'a' },
      { q: 'x', key: 'b' },
      { q: 'x"],["' },
      { q: 'X' },
      { q: '\u0078\u0301' },
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
    const different = [
      1,
      '1',
      true,
      'true',
      null,
      'null',
      [],
      {},
      [1],
      ['1'],
      [[1]],
      { a: 1 },
      { a: [1] },
      deep(200),
      deep(254),
    ];
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
      { _type: 'int256', _times: '1' },
      { _type: 'uint256', _times: '10' },
      { _type: 'string', _times: '1' },
    ];
    const bodies = [asUint];
    for (const parameters of others.slice(0, 2)) bodies.push(await text('wild', parameters));
    assert.equal(new Set(bodies).size, 3);
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
    const second = await eventuallyOther(first);
    assert.notEqual(JSON.parse(second).signature, JSON.parse(first).signature);
    await verifyRaw(JSON.parse(second), service.signer.address);
  });

  async function eventuallyOther(first: string): Promise<string> {
    for (;;) {
      const body = await text('short');
      if (body !== first) return body;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  it('failures are not kept', async () => {
    upstream.on('/failing', faults.serverError());
    for (let i = 0; i < 2; i++) await assertRefused(await service.post('api/failing'), 502, 'API call failed');
    assert.equal(upstream.requests.length, 2);
    upstream.json('/failing', { ok: 1 });
    assert.deepEqual(JSON.parse(await text('failing')).rawData, { ok: 1 });
    upstream.on('/failing', faults.serverError());
    assert.deepEqual(JSON.parse(await text('failing')).rawData, { ok: 1 });
    for (let i = 0; i < 2; i++) {
      await assertRefused(await service.post('api/none'), 502, 'No value found at path: $.none');
    }
    assert.equal(upstream.requests.length, 5);
  });

  it('comes after authentication and validation', async () => {
    await text('keyed', {}, { 'X-Api-Key': 'k' });
    await assertRefused(await service.post('api/keyed'), 401, 'Missing X-Api-Key header');
    await assertRefused(await service.post('api/keyed', {}, { 'X-Api-Key': 'K' }), 401, 'Invalid API key');
    await assertRefused(
      await service.post('api/keyed', null, { 'X-Api-Key': 'k' }),
      400,
      'Request parameters must be an object',
    );
  });

  it('nothing went wrong on the way', async () => {
    await eventually(() => true, 'a turn');
    assert.deepEqual(
      service.logs.filter(({ level }) => level === 'error'),
      [],
    );
  });
});

describe('cache.maxAge', () => {
  for (const maxAge of [0, -1, 1.5, '60000x', null, true]) {
    it(`${JSON.stringify(maxAge)} stops start-up`, async () => {
      const config = oneApi('http://127.0.0.1:1', { a: {} }, { api: { cache: { maxAge } } });
      await assert.rejects(startTestService(config), /apis\[0\]\.cache\.maxAge/);
    });
  }

  it('a missing one and an unknown key stop start-up', async () => {
    await assert.rejects(startTestService(oneApi('http://127.0.0.1:1', { a: { cache: {} } })), /endpoints\[0\]\.cache/);
    await assert.rejects(
      startTestService(oneApi('http://127.0.0.1:1', { a: { cache: { maxAge: 1, ttl: 1 } } })),
      /endpoints\[0\]\.cache\.ttl/,
    );
  });
});
