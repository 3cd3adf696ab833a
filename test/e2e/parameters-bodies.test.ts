/** Bodies that are not flat JSON, and lists in queries. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what stands in a config file
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { askableService } from '../support/askable.ts';
import { loadObject } from '../support/config.ts';
import { type Block, oneApi } from '../support/service.ts';

const AT = 'apis[0].endpoints[0]';
const post = (parameters: readonly Block[], more: Block = {}) => ({ method: 'POST', parameters, ...more });
const inBody = (name: string, more: Block = {}) => ({ name, in: 'body', ...more });
const form = { bodyType: 'form' };

const rpc = post([
  inBody('jsonrpc', { fixed: '2.0' }),
  inBody('id', { fixed: 1 }),
  inBody('method', { fixed: 'eth_getBlockByNumber' }),
  inBody('params', { fixed: ['finalized', false, { deep: [null, 1.5, {}] }] }),
]);
const graph = post([
  inBody('query', { fixed: 'query($symbol: String!) { price(symbol: $symbol) }' }),
  inBody('variables.symbol', { nested: true, required: true }),
  inBody('variables.page.size', { nested: true, default: 5 }),
  inBody('variables.page.from', { nested: true }),
  inBody('__proto__.x', { nested: true }),
  inBody('a.b', { default: 'flat' }),
]);
const endpoints = {
  rpc,
  graph,
  defaulted: post([inBody('list', { default: [1, { a: 2 }] }), inBody('map', { default: { b: [] } })]),
  form: post(
    [inBody('symbol', { required: true }), inBody('a b', { default: 1e21 }), inBody('on', { fixed: true })],
    form,
  ),
  strict: { ...post([inBody('symbol')], form), strictParameters: true },
  repeat: { parameters: [{ name: 'ids', style: 'repeat', default: ['x', 'y'] }, { name: 'q' }] },
  comma: {
    parameters: [
      { name: 'ids', style: 'comma', schema: { maxItems: 3, maxLength: 9 } },
      { name: 'v', fixed: [1, 2], style: 'comma' },
    ],
  },
  exact: { strictParameters: true, parameters: [{ name: 'ids', style: 'repeat' }] },
};

describe('bodies and lists of parameters', async () => {
  const { ask, refuse } = await askableService(endpoints);

  it('JSON-RPC: a pinned list is sent as it stands, whatever the client says', async () => {
    const body =
      '{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["finalized",false,{"deep":[null,1.5,{}]}]}';
    assert.equal((await ask('rpc')).body, body);
    assert.equal((await ask('rpc', { params: ['latest', true] })).body, body);
  });

  it('a default may be a list or an object, which a client replaces as a whole', async () => {
    assert.equal((await ask('defaulted')).body, '{"list":[1,{"a":2}],"map":{"b":[]}}');
    assert.equal((await ask('defaulted', { list: [], map: null })).body, '{"list":[],"map":null}');
  });

  it('GraphQL: `nested: true` sets members at a depth; a dot without it is part of a name', async () => {
    const query = '"query":"query($symbol: String!) { price(symbol: $symbol) }"';
    const { body, headers } = await ask('graph', { 'variables.symbol': 'ETH' });
    assert.equal(body, `{${query},"variables":{"symbol":"ETH","page":{"size":5}},"a.b":"flat"}`);
    assert.equal(headers['content-type'], 'application/json');
    const all = { 'variables.symbol': { deep: [1] }, 'variables.page.from': 2, '__proto__.x': 3, 'a.b': null };
    const members = '"variables":{"symbol":{"deep":[1]},"page":{"size":5,"from":2}},"__proto__":{"x":3},"a.b":null';
    assert.equal((await ask('graph', all)).body, `{${query},${members}}`);
    await refuse('graph', { variables: { symbol: 'ETH' } }, 'Missing required parameter(s): variables.symbol');
  });

  it('`bodyType: form` sends a form', async () => {
    const { body, headers } = await ask('form', { symbol: 'E T&H=ü+' });
    assert.equal(body, 'symbol=E%20T%26H%3D%C3%BC%2B&a%20b=1000000000000000000000&on=true');
    assert.equal(headers['content-type'], 'application/x-www-form-urlencoded');
    const fields = { symbol: 'E T&H=ü+', 'a b': '1000000000000000000000', on: 'true' };
    assert.deepEqual(Object.fromEntries(new URLSearchParams(body)), fields);
    assert.equal((await ask('strict', {})).body, '');
  });

  it('a form carries texts: null and lone surrogates are 400, a list or an object as outside a body', async () => {
    await refuse('form', { symbol: null }, 'Invalid parameter: symbol');
    await refuse('form', { symbol: '\ud800' }, 'Invalid parameter: symbol');
    for (const symbol of [['a'], {}]) await refuse('strict', { symbol }, 'Invalid parameter: symbol');
    assert.equal((await ask('form', { symbol: [1, 2] })).body, 'symbol=1%2C2&a%20b=1000000000000000000000&on=true');
  });

  it('a list in a query is sent by its style; what is none stays one text', async () => {
    assert.equal((await ask('repeat')).path, '/repeat?ids=x&ids=y');
    const list = 'ids=a%26b&ids=1000000000000000000000&ids=true&ids=';
    const { path } = await ask('repeat', { ids: ['a&b', 1e21, true, ''], q: [1, 2] });
    assert.equal(path, `/repeat?${list}&q=1%2C2`);
    assert.equal((await ask('repeat', { ids: [] })).path, '/repeat');
    assert.equal((await ask('repeat', { ids: 'a,b' })).path, '/repeat?ids=a%2Cb');
    assert.equal((await ask('comma', { ids: ['a,b', 'c'] })).path, '/comma?ids=a%2Cb,c&v=1,2');
    assert.equal((await ask('comma', { ids: [] })).path, '/comma?ids=&v=1,2');
  });

  it('a schema counts the items of a list; a strict endpoint takes lists with a style, of texts alone', async () => {
    await refuse('comma', { ids: ['1', '2', '3', '4'] }, 'Invalid parameter: ids (must not have more than 3 items)');
    await refuse('comma', { ids: {} }, 'Invalid parameter: ids (must be either string or number or boolean or array)');
    assert.equal((await ask('exact', { ids: ['a', 2] })).path, '/exact?ids=a&ids=2');
    for (const ids of [[['a']], [{}], [null], {}]) await refuse('exact', { ids }, 'Invalid parameter: ids');
    await refuse('repeat', { ids: ['\ud800'] }, 'Invalid parameter: ids');
  });
});

describe('bodies and lists in the config', () => {
  const config = (endpoint: Block, api: Block = {}) => oneApi('https://upstream.example', { e: endpoint }, { api });

  it('a variable inside a fixed list makes the parameter secret; one inside a default is warned of', async () => {
    const load = (key: string, value: unknown) =>
      loadObject(config(post([inBody('a', { [key]: value })])), { KEY: 'hidden' });
    const { explained } = await load('fixed', { list: ['${KEY}'] });
    const secret = /"parameters":\[\{"in":"body","name":"a","required":false,"secret":true\}\]/;
    assert.match(explained[0]?.text ?? '', secret);
    const { warnings } = await load('default', ['${KEY}']);
    const message = 'contains a variable: its value enters the endpoint ID, and --explain shows it';
    const told = warnings.map(({ path, message }) => ({ path, message }));
    assert.deepEqual(told, [{ path: `${AT}.parameters[0].default[0]`, message }]);
  });
});
