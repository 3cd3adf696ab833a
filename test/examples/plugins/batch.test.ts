/** batch answers several requests in one, each as if it came by itself. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { example } from '../../support/examples.ts';
import { assertRefused, postText } from '../../support/http.ts';
import { type Lifetime, suite } from '../../support/lifetime.ts';
import { openRaw } from '../../support/raw-http.ts';
import { oneApi, serviceFor } from '../../support/service.ts';
import { faults, upstreamFor } from '../../support/upstream.ts';

const KEY = 'a key of sixteen characters';
const UNKNOWN = `0x${'00'.repeat(32)}`;

describe('batch', async () => {
  const start = (lifetime: Lifetime, config: object = {}, more: object = {}) =>
    serviceFor(
      lifetime,
      oneApi(
        upstream.url,
        {
          price: { parameters: [{ name: 'symbol', required: true }] },
          paid: { auth: { type: 'apiKey', keys: [KEY] } },
          slow: {},
          hang: {},
          broken: {},
          exact: {},
          stream: { path: '/price?stream', mode: 'stream' },
          later: { path: '/price?later', mode: 'async' },
        },
        { settings: { plugins: [{ ...example('batch', config), timeout: 500 }] }, ...more },
      ),
    );
  const idOf = (name: string) => service.ids[`api/${name}`] ?? UNKNOWN;
  const batch = (items: unknown, headers: Record<string, string> = {}, at = service) =>
    postText(`${at.url}/batch`, JSON.stringify(items), { 'Content-Type': 'application/json', ...headers });
  const read = async (response: Response) => JSON.parse(await response.text());
  const statuses = async (response: Response) => (await read(response)).map(({ status }: { status: number }) => status);

  const upstream = await upstreamFor(suite, {
    '/price': (req, res, recorded) => faults.json(recorded.path)(req, res, recorded),
    '/paid': faults.json(1),
    '/slow': faults.slow(1200, faults.json('late')),
    '/hang': faults.hang(),
    '/broken': faults.serverError(),
    '/exact': faults.text('{"n": 1e2, "a": [1.50]}'),
  });
  const service = await start(suite, { max: 8 });

  it('answers in the order of the requests, each as if it came by itself', async () => {
    const response = await batch([
      { endpointId: idOf('slow') },
      { endpointId: idOf('price'), parameters: { symbol: 'ETH' } },
      { endpointId: idOf('price') },
      { endpointId: idOf('broken'), parameters: {} },
      { endpointId: UNKNOWN },
      { endpointId: 'no id' },
      { endpointId: idOf('later'), parameters: {} },
      { endpointId: idOf('stream') },
    ]);
    assert.equal(response.status, 200);
    const [slow, price, missing, broken, unknown, odd, later, stream, ...rest] = await read(response);
    assert.deepEqual([slow.status, slow.body.rawData], [200, 'late']);
    assert.deepEqual(
      [price.status, price.body.rawData, price.body.endpointId],
      [200, '/price?symbol=ETH', idOf('price')],
    );
    assert.deepEqual(missing, { status: 400, body: { error: 'Missing required parameter(s): symbol' } });
    assert.deepEqual(broken, { status: 502, body: { error: 'API call failed' } });
    assert.deepEqual([unknown, odd], Array(2).fill({ status: 404, body: { error: 'Endpoint not found' } }));
    assert.deepEqual([later.status, later.body.status], [202, 'pending']);
    assert.equal(stream.status, 200);
    assert.match(stream.body, /^data: \{"done":true,.*"rawData":"\/price\?stream",.*\}\n\n$/);
    assert.deepEqual(rest, []);
  });

  it('the plugin’s budget does not run while an upstream is slower than it', async () => {
    assert.deepEqual(await statuses(await batch([{ endpointId: idOf('slow') }])), [200]);
  });

  it('shows the same bytes that the endpoint itself sends', async () => {
    const [, body = ''] =
      /^\[\{"status":200,"body":(.*)\}\]$/.exec(await (await batch([{ endpointId: idOf('exact') }])).text()) ?? [];
    const alone = await (await service.post('api/exact')).text();
    const withoutTime = (text: string) => text.replace(/"timestamp":\d+|"signature":"0x[0-9a-f]+"/g, '');
    assert.equal(withoutTime(body), withoutTime(alone));
  });

  it('authenticates each with the headers of the batch', async () => {
    const items = [{ endpointId: idOf('paid') }, { endpointId: idOf('exact') }];
    const without = await read(await batch(items));
    assert.deepEqual(without[0], { status: 401, body: { error: 'Missing X-Api-Key header' } });
    assert.equal(without[1].status, 200);
    assert.deepEqual(await statuses(await batch(items, { 'X-Api-Key': KEY })), [200, 200]);
  });

  it('each takes a token of the rate limit, and the batch one', async (t) => {
    const limited = await start(t, {}, { server: { rateLimit: { max: 3, window: 3_600_000 } } });
    const response = await batch(Array(4).fill({ endpointId: idOf('exact') }), {}, limited);
    assert.deepEqual((await statuses(response)).sort(), [200, 200, 429, 429]);
    await assertRefused(await batch([], {}, limited), 429, 'Too Many Requests');
  });

  it('asks so many at a time', async (t) => {
    const narrow = await start(t, { concurrency: 2 });
    const before = upstream.open;
    let most = 0;
    upstream.on('/exact', (req, res, recorded) => {
      most = Math.max(most, upstream.open - before);
      return faults.slow(20, faults.json(1))(req, res, recorded);
    });
    const response = await batch(Array(6).fill({ endpointId: idOf('exact') }), {}, narrow);
    assert.deepEqual(await statuses(response), Array(6).fill(200));
    assert.equal(most, 2);
  });

  it('a client that leaves ends them all', async () => {
    const body = JSON.stringify(Array(6).fill({ endpointId: idOf('hang') }));
    const client = openRaw(service.url);
    client.write(`POST /batch HTTP/1.1\r\nHost: h\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    await upstream.until(() => upstream.requests.filter(({ path }) => path === '/hang').length === 4);
    client.destroy();
    await upstream.untilAborted('/hang', 4);
    await upstream.untilIdle();
    assert.equal(upstream.requests.filter(({ path }) => path === '/hang').length, 4);
  });

  it('is a list of requests, of a bounded number and size', async () => {
    for (const odd of [null, {}, 'x', [null], [{}], [{ endpointId: 1 }], [{ endpointId: 'a', parameters: [] }]])
      await assertRefused(await batch(odd), 400, 'Batch must be a list of requests');
    const url = `${service.url}/batch`;
    await assertRefused(await postText(url, '[{]'), 400, 'Batch must be a list of requests');
    await assertRefused(await postText(url, undefined), 400, 'Batch must be a list of requests');
    await assertRefused(await batch(Array(9).fill({ endpointId: UNKNOWN })), 400, 'Batch holds more than 8 requests');
    await assertRefused(await batch(['x'.repeat(65_536)]), 413, 'Request body too large');
  });

  it('parameters that no request could carry are a fault of their own request', async () => {
    const item = (parameters: string) => `{"endpointId":"${idOf('exact')}","parameters":${parameters}}`;
    const deep = `{"a":${'['.repeat(10_000)}${']'.repeat(10_000)}}`;
    const rounded = item('{"id":12345678901234567890}');
    const response = await postText(
      `${service.url}/batch`,
      `[${item(deep)},${item('{"a":1e999}')},${rounded},${item('{}')}]`,
    );
    const [first, second, third, fourth] = await read(response);
    const refused = { status: 400, body: { error: 'Request body must be valid JSON' } };
    assert.deepEqual([first, second, third, fourth.status], [refused, refused, refused, 200]);
  });
});
