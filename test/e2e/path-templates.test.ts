/** Parameters in `encoding.path`: one endpoint serves many feeds of an API. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AbiCoder } from 'ethers';
import { assertRefused, endpointUrl, postText } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { pluginFile } from '../support/plugin-files.ts';
import { served } from '../support/served.ts';
import { TEST_ADDRESS } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';

const AWKWARD = [
  ...["it's", '"', '\\', 'a.b', 'a,b', '*', '..', '$', "']['usd", '[0]', '?(@)', '{vs}', '{{ids}}', '__proto__', ''],
  ...['constructor', 'toString', '😀', 'x'.repeat(1000)],
];
const GECKO = Object.fromEntries(
  ['bitcoin', 'bit coin', ...AWKWARD].map((id, index) => [id, { usd: index + 1, eur: 100 + index, 'u.s/d': 7 }]),
);
const eur = { base: 'EUR', quote: 'USD', mid: 1.1 };
const QUOTES = { quotes: [eur, { ...eur, quote: 'U\'S"D', mid: 2.2 }, { ...eur, base: 'GBP', mid: 1.3 }] };

const int = (path: string) => ({ type: 'int256', times: '10', path });
const id = { name: 'id', in: 'none', required: true };
const n = { path: '/numbers', method: 'POST', parameters: [{ name: 'n', in: 'body', required: true }] };
const base = { name: 'base', in: 'none' };
const quote = { name: 'quote', in: 'none' };
const map = { 'BTC/USD': 'bitcoin', 'BIT/USD': 'bit coin' };
const short = { type: ['string', 'array'], maxLength: 20 };
const ids = { name: 'ids', required: true };
const feeds = {
  gecko: { parameters: [ids, { name: 'vs', default: 'usd' }], encoding: int('$.{ids}.{vs}') },
  mapped: { path: '/gecko', parameters: [{ ...id, name: 'feed', map }], encoding: int('$.{feed}.usd') },
  optional: { path: '/gecko', parameters: [{ name: 'ids' }], encoding: int('$.{ids}.usd') },
  unsent: { path: '/gecko', parameters: [id], encoding: int("$['{id}'].usd"), cache: { maxAge: '1h' } },
  quotes: {
    parameters: [base, { ...quote, fixed: 'USD', secret: true }],
    encoding: int('$.quotes[?(@.base == {base} && @.quote == {quote})].mid'),
  },
  pair: {
    path: '/rates/{base}',
    parameters: [
      { name: 'base', in: 'path', required: true },
      { ...quote, required: true },
    ],
    encoding: { type: 'int256,string', path: "$.rates['{base}-{quote}'].rate, $.{{base}}", times: '10,' },
  },
  body: { ...n, encoding: int('$[?(@.n === {n})].v') },
  named: {
    ...n,
    path: '/named',
    parameters: [...n.parameters, { name: 'm', in: 'none', fixed: 'first' }, { name: 'm', in: 'body' }],
    encoding: {
      ...int("$['id {n}'].v,$[?(@.id == '{n}')].v,$[?(@.n === {n})].v,$.{m}.v"),
      type: 'int256,int256,int256,int256',
    },
  },
  loose: { ...n, encoding: int('$[?(@.n == {n})].v') },
  strict: {
    path: '/gecko',
    strictParameters: true,
    parameters: [{ name: 'id', in: 'none', schema: short }],
    encoding: int('$.{id}.usd'),
  },
};
const NO_QUOTE = 'No value found at path: $.quotes[?(@.base == {base} && @.quote == {quote})].mid';

describe('templates in `encoding.path`', async () => {
  const answers = {
    '*': faults.json({ rates: { 'A/B-😀': { rate: 4.2 } }, '{base}': 'literal' }),
    '/gecko': faults.text(JSON.stringify(GECKO)),
    '/quotes': faults.json(QUOTES),
    '/numbers': faults.json(['5', 5, true, null].map((n, index) => ({ n, v: index + 1 }))),
  };
  const swap = `onBeforeApiCall({ parameters }) {
    if (parameters.ids === 'swap') return { parameters: { ...parameters, ids: 'bit coin' } };
  }`;
  const changes = pluginFile('changes', swap);
  const around = `export default { name: 'around', setup: () => ({ hooks: {
    callApi: ({ url, method, headers }, exchange, { next }) => next({ url, method, headers, pathValues: { ids: 'x' } }),
  } }) };`;
  const more = { answers, sources: { changes, around }, settings: { openapi: true } };
  const { upstream, service } = await served(suite, feeds, more);

  const signed = async (endpoint: string, parameters: object, types = ['int256']) => {
    const { data } = await verifyEncoded(await service.post(`api/${endpoint}`, parameters), TEST_ADDRESS);
    return AbiCoder.defaultAbiCoder().decode(types, data).toArray();
  };

  it('the value is a name, whatever it holds', async () => {
    for (const [id, { usd }] of Object.entries(GECKO)) {
      assert.deepEqual(await signed('gecko', { ids: id }), [BigInt(usd) * 10n], id);
      assert.deepEqual(await signed('unsent', { id }), [BigInt(usd) * 10n], id);
    }
    assert.deepEqual(await signed('gecko', { ids: 'bitcoin', vs: 'eur' }), [1000n]);
    assert.deepEqual(await signed('gecko', { ids: 'bitcoin', vs: 'u.s/d' }), [70n]);
  });

  it('what finds nothing shows the path as configured', async () => {
    for (const ids of ['nothing', "bitcoin'].usd", 'hasOwnProperty', 'length'])
      await assertRefused(await service.post('api/gecko', { ids }), 502, 'No value found at path: $.{ids}.{vs}');
    await assertRefused(await service.post('api/quotes', { base: 'CHF' }), 502, NO_QUOTE);
  });

  it('the value is a literal of a filter; fixed and secret ones are taken, too', async () => {
    assert.deepEqual(await signed('quotes', { base: 'GBP' }), [13n]);
    assert.deepEqual(await signed('quotes', { base: 'EUR' }), [11n]);
    for (const base of ["EUR' || 'a' == 'a", '@.base', 'EUR"', '', '\ud800'])
      await assertRefused(await service.post('api/quotes', { base }), 502, NO_QUOTE);
  });

  it('the value is a part of a name; doubled braces are braces', async () => {
    assert.deepEqual(await signed('pair', { base: 'A/B', quote: '😀' }, ['int256', 'string']), [42n, 'literal']);
  });

  it('a value of a body keeps its type', async () => {
    for (const [index, n] of ['5', 5, true, null].entries())
      assert.deepEqual(await signed('body', { n }), [BigInt(index + 1) * 10n]);
  });

  it('a number of a body has all its digits in a name or a text', async () => {
    const [long, other] = ['12345678901234567890', '12345678901234567000'];
    const entries = [other, long].map((n, v) => `"id ${n}":{"v":${v},"id":"${n}"}`);
    upstream.on('/named', faults.text(`{${entries},"number":{"n":${long},"v":2},"first":{"v":3}}`));
    const response = await postText(endpointUrl(service, 'api/named'), `{"parameters":{"n":${long},"m":${long}}}`);
    const { data } = await verifyEncoded(response, TEST_ADDRESS);
    const signed = AbiCoder.defaultAbiCoder().decode(Array(4).fill('int256'), data).toArray();
    assert.deepEqual(signed, [10n, 10n, 20n, 30n], 'of two parameters with one name the first counts');
  });

  it('a filter with a large value ends early, and is told so', async () => {
    upstream.on('/numbers', faults.json([{ n: '5', v: 1 }, ...Array.from({ length: 7000 }, (_, n) => ({ n, v: n }))]));
    const started = performance.now();
    const long = await service.post('api/loose', { n: Array.from({ length: 30_000 }, () => 1) });
    await assertRefused(long, 502, 'API call failed');
    assert.ok(performance.now() - started < 2000);
    const { fields } = service.logs.findLast(({ fields: { detail } }) => detail !== undefined) ?? assert.fail();
    assert.equal(fields.detail, 'the path takes too many steps on this document');
    assert.deepEqual(await signed('loose', { n: 4999 }), [49990n]);
  });

  it('is what is sent: after hooks, and in plain digits', async () => {
    assert.deepEqual(await signed('gecko', { ids: 'swap' }), [20n]);
    assert.equal(upstream.requests.at(-1)?.path, '/gecko?ids=bit%20coin&vs=usd');
    upstream.on('/gecko', faults.json({ '1000000000000000000000': { usd: 3 } }));
    assert.deepEqual(await signed('gecko', { ids: 1e21 }), [30n]);
    upstream.on('/gecko', faults.text(JSON.stringify(GECKO)));
  });

  it('is what a map makes of the client’s value', async () => {
    assert.deepEqual(await signed('mapped', { feed: 'BTC/USD' }), [10n]);
    assert.deepEqual(await signed('mapped', { feed: 'BIT/USD' }), [20n]);
    await assertRefused(await service.post('api/mapped', { feed: 'bitcoin' }), 400, 'Invalid parameter: feed');
  });

  it('`in: none` is never sent, and is part of the cache key', async () => {
    const { length } = upstream.requests;
    assert.deepEqual(await signed('unsent', { id: 'bit coin', other: 1 }), [20n]);
    assert.equal(upstream.requests.length, length, 'it was asked before');
    assert.deepEqual(await signed('quotes', { base: 'GBP' }), [13n]);
    assert.equal(upstream.requests.at(-1)?.path, '/quotes');
  });

  it('a parameter that a path holds must be given, before anything is asked', async () => {
    const { length } = upstream.requests;
    for (const [endpoint, name] of Object.entries({ optional: 'ids', quotes: 'base' }))
      for (const parameters of [{}, { [name]: null }]) {
        const response = await service.post(`api/${endpoint}`, parameters);
        await assertRefused(response, 400, `Missing required parameter(s): ${name}`);
      }
    assert.equal(upstream.requests.length, length);
  });

  it('`in: none` has a schema and strictness as others have', async () => {
    assert.deepEqual(await signed('strict', { id: 'bitcoin' }), [10n]);
    for (const [parameters, error] of [
      [{ id: 'x'.repeat(21) }, 'Invalid parameter: id (must not have more than 20 characters)'],
      [{ id: ['bitcoin'] }, 'Invalid parameter: id'],
      [{ ids: 'bitcoin' }, 'Unknown parameter: ids'],
    ] as const)
      await assertRefused(await service.post('api/strict', parameters), 400, error);
  });

  it('OpenAPI says what must be given', async () => {
    const document = JSON.parse(await (await fetch(`${service.url}/openapi.json`)).text());
    const schema = (name: string) =>
      document.paths[`/endpoints/${service.ids[`api/${name}`]}`].post.requestBody.content['application/json'].schema;
    const { properties, required } = schema('quotes').properties.parameters;
    assert.deepEqual([Object.keys(properties), required], [['base'], ['base']]);
    assert.deepEqual(schema('optional').properties.parameters.required, ['ids']);
  });
});

describe('templates in a config', () => {
  it('a requester has no templates', async () => {
    const encoding = { type: 'int256', path: '*', times: '1' };
    const answers = { '*': faults.json({ bitcoin: 5, '{ids}': 6 }) };
    const { encoded } = await served(suite, { e: { parameters: [ids], encoding } }, { answers });
    const { data } = await encoded('e', { ids: 'bitcoin', _path: '$.{ids}' });
    assert.equal(BigInt(data), 6n);
  });
});
