/** The handler of a route gets the request as it was sent, within bounds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertRefused, assertRouteHeaders } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { notes, pluginFiles, pluginTools } from '../support/plugin-files.ts';
import { exchangeRaw, parseResponse, requestHead } from '../support/raw-http.ts';
import { served } from '../support/served.ts';
import { oneApi, startTestService } from '../support/service.ts';

/** The eight bytes that every PNG file begins with: no UTF-8, no text. */
const PNG = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];

const routes = `${pluginTools}
const json = (value) => ({ status: 200, body: JSON.stringify(value) });
const png = Uint8Array.from(${JSON.stringify(PNG)});
const types = { png: 'image/png', json: 'application/json; charset=utf-8', problem: 'application/problem+json' };
const reply = ({ type }) => ({ status: 200, ...(types[type] && { headers: { 'content-TYPE': types[type] } }), body: png });
export default {
  name: 'routes',
  setup: () => ({
    routes: [
      { method: 'POST', path: '/bytes', admit: false, maxBody: 8, handle: ({ body }) => json([body instanceof Uint8Array, ...body]) },
      { method: 'POST', path: '/parse', admit: false, maxBody: 64, handle: ({ body }) => json(JSON.parse(Buffer.from(body).toString())) },
      { method: 'POST', path: '/none', admit: false, handle: ({ body }) => json([body instanceof Uint8Array, body.length]) },
      { method: 'GET', path: '/query', admit: false, handle: ({ query }) => json([...query]) },
      { method: 'GET', path: '/reply/:type', admit: false, handle: ({ params }) => reply(params) },
      { method: 'GET', path: '/later', admit: false, handle: () => { const body = png.slice(); setImmediate(() => body.fill(0)); return { ...reply({ type: 'png' }), body }; } },
      { method: 'GET', path: '/nothing', admit: false, handle: () => undefined },
      { method: 'GET', path: '/null', admit: false, handle: async () => null },
      { method: 'GET', path: '/slow', admit: false, handle: () => sleep(10_000) },
    ],
  }),
};`;

describe('what the handler of a route gets', async () => {
  const get = (path: string) => fetch(service.url + path);
  const post = (path: string, body: string | Uint8Array<ArrayBuffer>) =>
    fetch(service.url + path, { method: 'POST', body });
  const read = async (response: Response) => JSON.parse(await response.text());
  /** Of the last refusal that was the plugin's fault. */
  const reason = () => String(service.logs.findLast(({ level }) => level === 'warn')?.fields.detail).split('\n', 1)[0];

  const { service } = await served(suite, { e: {} }, { sources: { routes }, entries: { routes: { timeout: 500 } } });

  it('the body exactly as it was sent, whatever it is', async () => {
    assert.deepEqual(await read(await post('/bytes', Uint8Array.from(PNG))), [true, ...PNG]);
    assert.deepEqual(await read(await post('/bytes', '')), [true]);
    const value = { a: ['ü', 1.5, null] };
    assert.deepEqual(await read(await post('/parse', JSON.stringify(value))), value);
  });

  it('also in chunks', async () => {
    const head = requestHead('POST /bytes', { 'Transfer-Encoding': 'chunked' });
    const [first, rest] = [PNG.slice(0, 3), PNG.slice(3)].map((part) => Buffer.from(part).toString('latin1'));
    const chunks = Buffer.from(`${head}\r\n3\r\n${first}\r\n5\r\n${rest}\r\n0\r\n\r\n`, 'latin1');
    const { status, body } = parseResponse(await exchangeRaw(service.url, chunks));
    assert.deepEqual([status, body], [200, JSON.stringify([true, ...PNG])]);
  });

  it('no body unless the route takes one', async () => {
    assert.deepEqual(await read(await post('/none', 'something')), [true, 0]);
  });

  it('a body over maxBody is 413, announced or in chunks', async () => {
    await assertRefused(await post('/bytes', '123456789'), 413, 'Request body too large');
    const head = requestHead('POST /bytes', { 'Transfer-Encoding': 'chunked' });
    const chunked = await exchangeRaw(service.url, `${head}\r\n4\r\n1234\r\n5\r\n12345\r\n0\r\n\r\n`);
    const { status, body } = parseResponse(chunked);
    assert.deepEqual([status, body], [413, '{"error":"Request body too large"}']);
  });

  it('the query: decoded, in order, with repeated names', async () => {
    const query = async (text: string) => read(await get(`/query${text}`));
    const pairs = Object.entries({ b: 'x y?z', c: '', ü: '€' });
    const [b, c, u] = pairs;
    assert.deepEqual(await query('?a=1&b=x+y?z&a=2&c&%C3%BC=%E2%82%AC'), [['a', '1'], b, ['a', '2'], c, u]);
    assert.deepEqual(await query('?'), []);
    assert.deepEqual(await query(''), []);
    assert.deepEqual(await query('??a=b'), [['?a', 'b']]);
  });

  it('what is no JSON in a body is the handler’s own business', async () => {
    await assertRefused(await post('/parse', '{'), 500, 'Internal server error');
  });

  describe('and what it may return', () => {
    it('bytes of any media type', async () => {
      for (const path of ['/reply/png', '/later']) {
        const response = await get(path);
        assertRouteHeaders(response);
        const { headers } = response;
        assert.deepEqual([headers.get('content-type'), headers.get('content-length')], ['image/png', '8']);
        assert.deepEqual([...new Uint8Array(await response.arrayBuffer())], PNG);
      }
    });

    for (const type of ['json', 'problem', 'none'])
      it(`no bytes as JSON: ${type}`, async () => {
        await assertRefused(await get(`/reply/${type}`), 500, 'Internal server error');
        const why = 'returned something of the wrong shape: bytes need a media type other than JSON';
        assert.equal(reason(), `plugin "routes": Error: ${why}`);
      });

    const shape = 'plugin "routes": Error: returned something of the wrong shape';
    for (const [path, why] of [
      ['/nothing', 'nothing serves GET /nothing'],
      ['/null', `${shape}: it must be an object {status, headers, body}`],
    ] as const)
      it(`something: ${path} is 500`, async () => {
        await assertRefused(await get(path), 500, 'Internal server error');
        assert.equal(reason(), why);
      });

    it('in time', async () => assertRefused(await get('/slow'), 403, 'Plugin "routes" budget exhausted'));
  });
});

it('maxBody that is no number of bytes stops the start', async () => {
  const handle = "handle: () => ({ status: 200, body: '{}' })";
  for (const maxBody of ['-1', '1.5', "'1kb'", 'null', 'Infinity']) {
    const route = `{ method: 'POST', path: '/a', admit: false, maxBody: ${maxBody}, ${handle} }`;
    const odd = `export default { name: 'odd', setup: () => ({ routes: [${route}] }) };`;
    const { files, plugins } = pluginFiles({ odd });
    const starting = startTestService(oneApi('http://127.0.0.1:9', { e: {} }, { settings: { plugins } }), { files });
    const place = 'settings.plugins[0] (line 4): plugin "odd" of ./odd.mjs cannot be set up';
    const start = `${place}: what "setup" returned: routes[0].maxBody: `;
    await assert.rejects(starting, (error) => error instanceof Error && error.message.startsWith(start));
  }
});

it('services.budget is the timeout of the config, else the plugin’s own, else a second', async (t) => {
  const source = (name: string, budget: string) =>
    `${pluginTools}export default { name: '${name}', ${budget} setup({ budget }) { note('${name}', budget); return {}; } };`;
  const sources = {
    own: source('own', 'budget: 250,'),
    none: source('none', "budget: 'none',"),
    plain: source('plain', ''),
    set: source('set', 'budget: 250,'),
  };
  await served(t, { e: {} }, { sources, entries: { set: { timeout: 70 } } });
  const budgets = ['own', 'none', 'plain', 'set'].map((name) => notes.of(name));
  assert.deepEqual(budgets, [[250], ['none'], [1000], [70]]);
});
