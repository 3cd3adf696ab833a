/** Plugins ask endpoints of their own service by `services.ask`, and never without end. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { notes, pluginTools } from '../support/plugin-files.ts';
import { served } from '../support/served.ts';
import type { RunningService } from '../support/service.ts';
import { faults } from '../support/upstream.ts';

/** `GET /ask/<what>` asks with one of these, and tells what came of it. */
const asker = `${pluginTools}
const cycle = {};
cycle.self = cycle;
const given = {
  nothing: undefined, null: null, list: [], text: 'a', function: { a: () => 1 }, symbol: { a: Symbol('s') },
  bigint: { a: 1n }, NaN: { a: NaN }, date: { a: new Date(0) }, cycle, nested: { a: JSON.parse('['.repeat(300) + ']'.repeat(300)) },
  throws: { get a() { throw new RangeError('boom'); } }, none: {}, undefined: { a: undefined },
};
export default {
  name: 'asker',
  setup: ({ ask, endpoints }) => ({
    hooks: { onHttpRequest: ({ parameters, headers, endpoint }) => note(endpoint, [parameters, headers['x-mine']]) },
    routes: [{
      method: 'GET', path: '/ask/:endpoint/:what', admit: false,
      handle: async ({ params: { endpoint, what } }, exchange) => {
        const { id } = endpoints.find(({ name }) => name === endpoint) ?? { id: endpoint };
        const told = await ask(id, given[what], { as: exchange }).catch(({ name, message }) => ({ name, message }));
        return { status: 200, body: JSON.stringify(told) };
      },
    }],
  }),
};`;

describe('services.ask', async () => {
  const ask = async (endpoint: string, what: string) => {
    const response = await fetch(`${service.url}/ask/${endpoint}/${what}`, { headers: { 'X-Mine': 'yes' } });
    return JSON.parse(await response.text());
  };

  const answers = { '*': faults.json(7) };
  const endpoints = { sync: { cache: { maxAge: 60_000 } }, stream: { mode: 'stream' } };
  const { service } = await served(suite, endpoints, { answers, sources: { asker } });

  const carry = (what: string) => `parameters: holds a ${what}, which JSON cannot carry`;
  const NO_OBJECT = 'parameters: "parameters" is no object';
  const TOO_DEEP = 'parameters: is too deep, too large or in a cycle';
  for (const [what, message] of Object.entries({
    ...{ nothing: NO_OBJECT, null: NO_OBJECT, list: NO_OBJECT, text: NO_OBJECT },
    ...{ function: carry('function'), symbol: carry('symbol'), bigint: carry('bigint'), NaN: carry('number') },
    date: 'parameters: holds a class instance',
    ...{ cycle: TOO_DEEP, nested: TOO_DEEP, throws: 'parameters: boom' },
  })) {
    it(`refuses parameters that JSON cannot carry with a TypeError: ${what}`, async () => {
      assert.deepEqual(await ask('sync', what), { name: 'TypeError', message });
    });
  }

  it('gives status, headers and body of the response', async () => {
    const { status, headers, body } = await ask('sync', 'none');
    const { rawData } = JSON.parse(body);
    assert.deepEqual([status, headers, rawData], [200, { 'Cache-Status': 'signed-data-proxy; fwd=miss' }, 7]);
    const again = await ask('sync', 'undefined');
    assert.equal(again.body, body);
    assert.match(again.headers['Cache-Status'], /^signed-data-proxy; hit;/);
    assert.deepEqual(notes.of('sync'), Array(2).fill([{}, 'yes']));
  });

  it('an unknown endpoint is a response like any other', async () => {
    const refused = { status: 404, headers: {}, body: '{"error":"Endpoint not found"}' };
    assert.deepEqual(await ask(`0x${'00'.repeat(32)}`, 'none'), refused);
    assert.deepEqual(await ask('anything', 'none'), refused);
  });

  /** A service with a plugin of its own, and these endpoints. */
  const withPlugin = async (t: TestContext, own: string, endpoints: Parameters<typeof served>[1], more = {}) =>
    (await served(t, endpoints, { answers, sources: { own }, ...more })).service;
  const isRefused = ({ logs }: RunningService, why = /an endpoint asks for itself/) => {
    const [line] = logs.filter(({ message }) => message === 'Internal server error');
    assert.match(String(line?.fields?.detail), why);
  };

  it('requests that ask for each other without end are refused', async (t) => {
    const source = `let ask;
export default {
  name: 'loop',
  setup: (services) => ({
    hooks: { authenticate: { loop: async (_, exchange) => {
      const { status } = await services.ask(exchange.endpoint.id, {}, { as: exchange });
      if (status === 200) return true;
    } } },
  }),
  auth: { loop: { type: 'object' } },
};`;
    const looping = await withPlugin(t, source, { e: { auth: { type: 'loop' } } });
    const response = await looping.post('api/e');
    assert.deepEqual([response.status, await response.json()], [500, { error: 'Internal server error' }]);
    isRefused(looping);
  });

  it('and so are those of endpoints with a cache, which would wait for each other', async (t) => {
    const source = `export default {
  name: 'loop',
  setup: ({ ask, endpoints }) => ({
    hooks: { callApi: async (_, exchange) => {
      const other = endpoints.find(({ name }) => name !== exchange.endpoint.name);
      const { body } = await ask(other.id, {}, { as: exchange });
      return { data: JSON.parse(body), status: 200 };
    } },
  }),
};`;
    const cached = { cache: { maxAge: 60_000 } };
    const looping = await withPlugin(t, source, { a: cached, b: cached });
    assert.equal((await looping.post('api/a')).status, 200);
    isRefused(looping);
  });

  it('and so are chains of more than 8 endpoints', async (t) => {
    const source = `export default {
  name: 'chain',
  setup: ({ ask, endpoints }) => ({
    hooks: { authenticate: { chain: async (_, exchange) => {
      const next = endpoints[endpoints.findIndex(({ id }) => id === exchange.endpoint.id) + 1];
      return next === undefined || (await ask(next.id, {}, { as: exchange })).status === 200 || undefined;
    } } },
  }),
  auth: { chain: { type: 'object' } },
};`;
    const names = Array.from('abcdefghi', (name) => [name, { auth: { type: 'chain' } }]);
    const chained = await withPlugin(t, source, Object.fromEntries(names));
    assert.equal((await chained.post('api/b')).status, 200);
    assert.notEqual((await chained.post('api/a')).status, 200);
    isRefused(chained, /requests ask for each other, more than 8 deep/);
  });

  it('takes a request on whose behalf it asks, and the id of an endpoint', async (t) => {
    const source = `export default {
  name: 'odd',
  setup: ({ ask }) => ({
    routes: [{ method: 'GET', path: '/odd', admit: false, handle: async (_, exchange) => {
      const forged = { headers: { 'x-api-key': 'k' }, socketAddress: '10.0.0.1', clientSignal: exchange.clientSignal };
      const odd = [['0x00', {}], ['0x00', {}, {}], ['0x00', {}, { as: forged }], [{}, {}, { as: exchange }]];
      const told = odd.map((given) => ask(...given).catch(({ name, message }) => name + ': ' + message));
      return { status: 200, body: JSON.stringify(await Promise.all(told)) };
    } }],
  }),
};`;
    const odd = await withPlugin(t, source, { e: {} });
    const nobody = 'TypeError: services.ask takes {as: exchange}, the request on whose behalf it asks';
    const noId = 'TypeError: services.ask takes the id of an endpoint';
    assert.deepEqual(await (await fetch(`${odd.url}/odd`)).json(), [nobody, nobody, nobody, noId]);
  });

  it('a stream is text', async () => {
    const { status, headers, body } = await ask('stream', 'none');
    assert.deepEqual([status, headers], [200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' }]);
    assert.match(body, /^data: \{.*"rawData":7.*\}\n\n$/);
  });

  it('other headers, and another mode, take the place of the client’s and of the endpoint’s', async (t) => {
    const source = `${pluginTools}
const options = { headers: { 'x-mine': 'other', 'x-gone': undefined, 'x-api-key': 'right' }, mode: 'sync' };
export default {
  name: 'teller',
  setup: ({ ask, endpoints }) => ({
    hooks: { onHttpRequest: ({ headers }) => note('teller', ['x-mine', 'x-gone', 'x-kept'].map((name) => headers[name] ?? null)) },
    routes: [{ method: 'GET', path: '/tell/:how', admit: 'asked', handle: async ({ params: { how } }, exchange) => {
      const { status, body } = await ask(endpoints[0].id, {}, { as: exchange, ...(how === 'as-it-is' ? {} : options) });
      return { status, body };
    } }],
  }),
};`;
    const told = await withPlugin(t, source, { e: { mode: 'stream', auth: { type: 'apiKey', keys: ['right'] } } });
    const headers = { 'X-Mine': 'yes', 'X-Gone': 'yes', 'X-Kept': 'yes' };
    const asked = await fetch(`${told.url}/tell/otherwise`, { headers });
    assert.deepEqual([asked.status, JSON.parse(await asked.text()).rawData], [200, 7]);
    const refused = await fetch(`${told.url}/tell/as-it-is`, { headers });
    assert.deepEqual([refused.status, await refused.json()], [401, { error: 'Missing X-Api-Key header' }]);
    assert.deepEqual(notes.of('teller'), [
      ['other', null, 'yes'],
      ['yes', 'yes', 'yes'],
    ]);
  });

  it('a route that is admitted by what it asks counts once, and by services.admit where it asks nothing', async (t) => {
    const source = `export default {
  name: 'door',
  setup: ({ ask, admit, endpoints }) => ({
    routes: [{ method: 'GET', path: '/door/:what', admit: 'asked', handle: async ({ params: { what } }, exchange) => {
      if (what === 'open') return { status: 200, body: '1' };
      if (what === 'admit') await admit(exchange);
      else await ask(endpoints[0].id, {}, { as: exchange });
      return { status: 200, body: '2' };
    } }],
  }),
};`;
    const door = await withPlugin(t, source, { e: {} }, { server: { rateLimit: { max: 2, window: 600_000 } } });
    const statuses: number[] = [];
    for (const what of ['open', 'ask', 'open', 'admit', 'admit', 'open'])
      statuses.push((await fetch(`${door.url}/door/${what}`)).status);
    assert.deepEqual(statuses, [200, 200, 200, 200, 429, 200]);
  });
});
