/** Plugins serve routes, and one that cannot be served stops the start. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RegistrationError } from '../../kernel/registry.ts';
import { assertRefused, assertRouteHeaders, REQUEST_ID } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { pluginFiles } from '../support/plugin-files.ts';
import { served } from '../support/served.ts';
import { oneApi, startTestService, TEST_ADDRESS } from '../support/service.ts';
import { faults } from '../support/upstream.ts';

const everything = `
const text = (word) => ({ status: 200, headers: { 'Content-Type': 'text/plain' }, body: word });
export default {
  name: 'everything',
  setup: () => ({
    hooks: {
      respond: (headers, { route }) => (route === '/nothing' ? {} : route === '/replace' ? { 'ACCESS-control-allow-origin': 'null' } : undefined),
    },
    routes: [
      { method: 'GET', path: '*', admit: false, handle: () => text('anything') },
      { method: 'GET', path: '/own/:name', admit: false, handle: ({ params: { name } }) => text(name) },
      { method: 'POST', path: '/own/:name', admit: false, handle: () => text('posted') },
      { method: 'GET', path: '/nothing', admit: false, handle: () => text('nothing') },
      { method: 'GET', path: '/replace', admit: false, handle: () => text('replace') },
      ...[204, 304].map((status) => ({ method: 'GET', path: '/empty/' + status, admit: false, handle: () => ({ status, body: '' }) })),
      ...['Transfer-Encoding', 'content-length', 'CONNECTION', 'Keep-Alive', 'Upgrade', 'Trailer', 'TE'].map((name) => ({
        method: 'GET', path: '/framing/' + name, admit: false,
        handle: () => ({ ...text('framed'), headers: { [name]: name === 'content-length' ? '3' : 'chunked' } }),
      })),
    ],
  }),
};
`;
const framing = `
export default {
  name: 'framing',
  setup: () => ({ hooks: { respond: (headers, { route }) => (route === '/respond' ? { Connection: 'upgrade', 'X-Mine': '1' } : undefined) },
    routes: [{ method: 'GET', path: '/respond', admit: false, handle: () => ({ status: 200, body: '{}' }) }] }),
};
`;

describe('routes of plugins', async () => {
  const get = (path: string, init: RequestInit = {}) => fetch(service.url + path, init);

  const endpoints = { price: {}, later: { path: '/price', mode: 'async', parameters: [{ name: 'a' }] } };
  const answers = { '/price': faults.json({ price: 7 }) };
  const { service } = await served(suite, endpoints, { answers, sources: { everything, framing } });

  it('one for any path serves what nobody else does', async () => {
    assert.deepEqual(await (await get('/health')).json(), { status: 'ok', node: TEST_ADDRESS });
    assert.deepEqual(await (await get('/ready')).json(), { status: 'ready' });
    await assertRefused(await get(`/requests/0x${'00'.repeat(32)}`), 404, 'Request not found');
    assert.equal((await service.post('api/price')).status, 200);
    assert.equal(await (await get('/own/name')).text(), 'name');
    for (const path of ['/', '/elsewhere', '/health/', `/endpoints/${service.ids['api/price']}`, '/%zz']) {
      const response = await get(path);
      assert.equal(await response.text(), 'anything');
      assertRouteHeaders(response);
    }
  });

  it('one for any path is no answer to other methods', async () => {
    await assertRefused(await get('/elsewhere', { method: 'POST' }), 404, 'Not Found');
    await assertRefused(await get('/health', { method: 'DELETE' }), 405, 'Method Not Allowed');
    const preflight = await get('/own/name', { method: 'OPTIONS' });
    assert.equal(preflight.status, 204);
    const head = await get('/elsewhere', { method: 'HEAD' });
    assert.deepEqual([head.status, head.headers.get('content-type'), await head.text()], [200, 'text/plain', '']);
  });

  it('have no length where the status stands for no content', async () => {
    for (const status of [204, 304]) {
      const empty = await get(`/empty/${status}`);
      assert.deepEqual([empty.status, empty.headers.get('content-length')], [status, null]);
    }
  });

  it('cannot frame their own messages', async () => {
    const names = ['Transfer-Encoding', 'content-length', 'CONNECTION', 'Keep-Alive', 'Upgrade', 'Trailer', 'TE'];
    for (const name of names) {
      await assertRefused(await get(`/framing/${name}`), 500, 'Internal server error');
      const warnings = service.logs.map(({ fields }) => String(fields.detail));
      const reason = `plugin "everything": Error: returned something of the wrong shape: the header ${name} is the connection's own`;
      const isSaid = warnings.some((text) => text.startsWith(reason));
      assert.ok(isSaid, warnings.at(-1));
    }
  });

  it('nor can what adds headers to every response', async () => {
    const response = await get('/respond');
    assert.equal(response.status, 200);
    assertRouteHeaders(response);
    assert.equal(response.headers.get('x-mine'), null);
  });

  it('headers of one plugin are added to those of others', async () => {
    const nothing = await get('/nothing');
    assertRouteHeaders(nothing);
    assert.equal(nothing.headers.get('access-control-expose-headers')?.includes('X-Request-Id'), true);
    const replaced = await get('/replace');
    assert.equal(replaced.headers.get('access-control-allow-origin'), 'null');
    assert.match(replaced.headers.get('x-request-id') ?? '', REQUEST_ID);
  });
});

describe('a route that cannot be served stops the start and names the plugin', () => {
  const starting = async (route: string): Promise<string> => {
    const odd = `export default { name: 'odd', setup: () => ({ routes: [${route}] }) };`;
    const { files, plugins } = pluginFiles({ odd });
    const config = oneApi('http://127.0.0.1:9', { e: {} }, { settings: { plugins } });
    try {
      await (await startTestService(config, { files })).stop();
      return 'started';
    } catch (error) {
      assert.ok(error instanceof RegistrationError, String(error));
      return error.message;
    }
  };
  const handle = "handle: () => ({ status: 200, body: '{}' })";
  const PLACE = 'settings.plugins[0] (line 4): plugin "odd" of ./odd.mjs cannot be set up: what "setup" returned: ';
  const PATH =
    'routes[0].path: has the wrong form, expected: a path that begins with a slash, or * (pattern ^(?:/|\\*$))';

  for (const [route, why] of [
    [`{ method: 'GET', path: 'price', admit: false, ${handle} }`, PATH],
    [`{ method: 'GET', path: '', admit: false, ${handle} }`, PATH],
    [`{ method: 'GET', path: '/a', admit: false }`, 'routes[0].handle: required key is missing'],
    [
      `{ method: 'GET', path: '/a', admit: false, handle: {} }`,
      'routes[0].handle: expected a function, found a mapping',
    ],
    [`{ method: 'GET', path: '/a', ${handle} }`, 'routes[0].admit: required key is missing'],
    [
      `{ method: 'GET', path: '/a', admit: undefined, ${handle} }`,
      'routes[0].admit: expected true or false or "asked", found undefined',
    ],
    [`{ method: 'FETCH', path: '/a', admit: false, ${handle} }`, 'routes[0].method: there is no such method'],
    [`{ path: '/a', admit: false, ${handle} }`, 'routes[0].method: required key is missing'],
    [`{ method: 'GET', admit: false, ${handle} }`, 'routes[0].path: required key is missing'],
    [
      `{ method: 'POST', path: '/a', admit: false, maxBody: '1kb', ${handle} }`,
      'routes[0].maxBody: expected an integer, found a string',
    ],
    [
      `{ method: 'POST', path: '/a', admit: false, maxbody: 9, ${handle} }`,
      'routes[0].maxbody: unknown key, did you mean "maxBody"?',
    ],
  ] as const) {
    it(`${route}: ${why}`, async () => assert.equal(await starting(route), `${PLACE}${why}`));
  }

  for (const [routes, why] of [
    ['5', `${PLACE}routes: expected a list, found a number`],
    ['{}', `${PLACE}routes: expected a list, found a mapping`],
    ['[null]', `${PLACE}routes[0]: expected a mapping, found nothing`],
    ['[{ method: Symbol("m"), path: "/a" }]', `${PLACE}routes[0].method: expected a string, found symbol`],
    ['[{ get method() { throw new Error("boom"); } }]', PLACE.replace(/what .*/, 'boom')],
  ] as const) {
    it(`no routes at all: ${routes}`, async () => {
      assert.equal(await starting(`], routes: ${routes}, start: () => [`), why);
    });
  }

  for (const path of ['/{a', '/:', '/*', '/a(b', '/a?', '/:a:']) {
    it(`a pattern that cannot be read: ${path}`, async () => {
      const message = await starting(`{ method: 'GET', path: ${JSON.stringify(path)}, admit: false, ${handle} }`);
      assert.ok(message.startsWith(`plugin "odd": route GET ${path}: `), message);
    });
  }
});
