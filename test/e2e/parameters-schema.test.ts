/** A parameter that does not fit its schema is 400, before any call. */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what stands in a config file
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { askableService } from '../support/askable.ts';
import { assertRefused, endpointUrl, postText } from '../support/http.ts';

const query = (schema: object, more: object = {}) => ({ parameters: [{ name: 'q', schema, ...more }] });
const body = (schema: object) => ({ method: 'POST', parameters: [{ name: 'b', in: 'body', schema }] });

const endpoints = {
  integer: query({ type: 'integer', minimum: 1, maximum: 100 }),
  symbol: query({ type: 'string', pattern: '^[A-Z]{2,10}(,[A-Z]{2,10})*$' }, { default: 'BTC' }),
  choice: query({ enum: ['usd', 'eur', 7] }),
  length: query({ type: 'string', minLength: 2, maxLength: 3 }),
  cents: query({ type: 'number', multipleOf: 0.01 }),
  steps: body({
    items: { anyOf: [{ multipleOf: 0.5 }, { multipleOf: 0.3 }] },
    properties: { n: { multipleOf: 1e-8 }, const: { multipleOf: 0.01 }, properties: { enum: [{ multipleOf: 1 }] } },
  }),
  hidden: query({ enum: ['hunter2'] }, { secret: true }),
  evil: query({ pattern: '^(([a-z])+.)+[A-Z]([a-z])+$' }),
  looking: query({ pattern: '^(?!x)(\\w)-\\1\\b' }),
  either: query({ anyOf: [{ type: 'integer' }, { type: 'string', pattern: '^\\d+$' }] }),
  list: query({ anyOf: [{ type: 'array', maxItems: 2 }, { const: 'all' }] }),
  form: { ...body({ pattern: '^[A-Z]{3}$' }), bodyType: 'form' },
  order: body({
    type: 'object',
    required: ['lines'],
    additionalProperties: false,
    properties: {
      lines: { type: 'array', maxItems: 2, items: { type: 'object', properties: { n: { type: 'integer' } } } },
    },
  }),
};

/** Runs after the built-in functions, at `validate` and before the call. */
const changing = `export default { name: 'changing', setup: () => ({ hooks: {
  validate: (parameters) => globalThis.testValidate?.(parameters),
  onBeforeApiCall: ({ parameters }) => globalThis.testBefore?.(parameters),
} }) };`;

describe('schemas of parameters', async () => {
  const { ask, refuse: refused } = await askableService(endpoints, { sources: { changing } });

  beforeEach(() => {
    for (const name of ['testValidate', 'testBefore']) Reflect.deleteProperty(globalThis, name);
  });

  const nameOf = (endpoint: string) => (['order', 'form', 'steps'].includes(endpoint) ? 'b' : 'q');
  const take = async (endpoint: string, ...values: unknown[]) => {
    for (const value of values) await ask(endpoint, { [nameOf(endpoint)]: value });
  };
  const refuse = async (endpoint: string, why: string, ...values: unknown[]) => {
    const name = nameOf(endpoint);
    for (const value of values) await refused(endpoint, { [name]: value }, `Invalid parameter: ${name} (${why})`);
  };

  it('a text does not satisfy `integer`', async () => {
    await take('integer', 1, 100, 50.0);
    await refuse('integer', 'must be integer', '5', 1.5, true);
    await refuse('integer', 'must be >= 1', 0, -5);
    await refuse('integer', 'must be <= 100', 101);
  });

  it('texts have a form, a length, or are one of a few', async () => {
    await take('symbol', 'BTC', 'BTC,ETH');
    await refuse('symbol', 'must match the pattern ^[A-Z]{2,10}(,[A-Z]{2,10})*$', 'btc', '', 'BTC,');
    await refuse('symbol', 'must be string', 5, ['BTC']);
    await take('choice', 'usd', 'eur', 7);
    await refuse('choice', 'must be one of "usd","eur",7', 'gbp', '7', 8);
    await take('length', 'ab', 'ab\u{1f600}');
    await refuse('length', 'must not have fewer than 2 characters', 'a');
    await refuse('length', 'must not have more than 3 characters', 'abcd');
    await take('either', 5, '5');
    await refuse('either', 'must be integer', 'x');
  });

  it('a multiple is one by its digits, however large or close to one it is', async () => {
    await take('cents', 0.3, -1_234_567.89, 12_345_678.91, 9_999_999_999.99, 1e21, 0);
    await refuse('cents', 'must be multiple of 0.01', 0.015, 5.000_000_000_01, 12_345_678.915, 5e-324);
    await take('steps', [1.5, 0.9, 'x', 7.2, 1e300], { n: 12_345_678.123_456_78 }, 0.7);
    await refuse('steps', '/0 must be multiple of 0.5', [0.7], [0.300_000_000_01]);
    await refuse('steps', '/n must be multiple of 1e-8', { n: 0.000_000_005 });
    await refuse('steps', '/const must be multiple of 0.01', { const: 5.000_000_000_01 });
    await take('steps', { properties: { multipleOf: 1 } });
  });

  it('what is not given is not checked, and neither is null outside a body', async () => {
    await ask('integer', {});
    await take('integer', null);
  });

  it('a list outside a body fits only a schema that names its type, so that it gets round no pattern', async () => {
    await refuse('evil', 'must be either string or number or boolean', ['aB'], {});
    await refuse('list', 'must not have more than 2 items', [1, 2, 3]);
    await take('list', 'all', [1, 2]);
    assert.equal((await ask('list', { q: ['a', 'b'] })).path, '/list?q=a%2Cb');
  });

  it('a list in a form, which carries text as well, gets round no pattern either', async () => {
    await take('form', 'ETH');
    await refuse('form', 'must be either string or number or boolean', ['ET&H'], {}, null);
  });

  it('a value in a body may be a list or an object, and its faults have a place', async () => {
    await take('order', { lines: [] }, { lines: [{ n: 1 }, { n: 2, more: true }] });
    await refuse('order', 'must be object', null, [], 'x', 1);
    await refuse('order', 'must have required properties lines', {});
    await refuse('order', '/other must not be there', { lines: [], other: 1 });
    await refuse('order', '/lines/1/n must be integer', { lines: [{ n: 1 }, { n: '2' }] });
    await refuse('order', '/lines must not have more than 2 items', { lines: [{}, {}, {}] });
  });

  it('a reason shows neither what was given nor what a secret may be', async () => {
    await take('hidden', 'hunter2');
    await refuse('hidden', 'does not fit its schema', 'LEAK', 1);
  });

  it('what a plugin makes of the parameters is checked in the same way', async () => {
    for (const at of ['testValidate', 'testBefore']) {
      const answer = (value: unknown) => {
        const changed = { q: value };
        Reflect.set(globalThis, at, () => (at === 'testBefore' ? { parameters: changed } : changed));
      };
      answer('5');
      await refuse('integer', 'must be integer', 5);
      answer(['BTC', 'ETH']);
      await refuse('choice', 'must be either string or number or boolean', 7);
      await refuse('evil', 'must be either string or number or boolean', undefined);
      answer(7);
      assert.equal((await ask('integer', { q: 5 })).path, '/integer?q=7');
      Reflect.deleteProperty(globalThis, at);
    }
  });

  it('a pattern that would go back over a text forever ends after some milliseconds', async () => {
    const began = performance.now();
    await refuse('evil', 'takes too long to check', 'a'.repeat(60_000));
    assert.ok(performance.now() - began < 2000);
    await take('evil', 'abCd');
    await take('looking', 'a-a', 'b-b');
    await refuse('looking', 'must match the pattern ^(?!x)(\\w)-\\1\\b', 'a-b', 'x-x');
  });
});

describe('strictParameters', async () => {
  const parameters = [
    { name: 'symbol', schema: { pattern: '^[A-Z]+$', type: 'string' }, description: 'Of what' },
    { name: 'hidden', secret: true, schema: { const: 'LEAK' } },
    { name: 'tier', fixed: 'gold' },
  ];
  const encoding = { type: '*', path: '$.value' };
  const twice = {
    method: 'POST',
    parameters: [
      { name: 'id', schema: { type: 'integer', minimum: 1 }, description: 'Of whom' },
      { name: 'id', in: 'body', schema: { maximum: 9 } },
    ],
  };
  const { service, ask, refuse } = await askableService(
    { twice, strict: { parameters }, encoded: { encoding }, lenient: { parameters, strictParameters: false } },
    { api: { strictParameters: true }, settings: { openapi: true } },
  );
  const send = (endpoint: string, text: string) => postText(endpointUrl(service, `api/${endpoint}`), text);

  it('refuses names that the endpoint does not take, those of fixed parameters among them', async () => {
    await ask('strict', { symbol: 'BTC' });
    await ask('strict', {});
    for (const name of ['symbl', 'tier', '_type', '__proto__', 'Symbol']) {
      const given = JSON.parse(`{"symbol":"BTC","${name}":"x"}`);
      await refuse('strict', given, `Unknown parameter: ${name}`);
    }
    const long = 'x'.repeat(1000);
    await refuse('strict', { [long]: 1 }, `Unknown parameter: ${long.slice(0, 64)}…`);
  });

  it('takes the reserved parameters of what the operator left open, and no others', async () => {
    await ask('encoded', { _type: 'int256' });
    await refuse('encoded', { _type: 'int256', _times: '10' }, 'Unknown parameter: _times');
  });

  it('takes of two parameters with one name what is right for both', async () => {
    await ask('twice', { id: 5 });
    await refuse('twice', { id: 0 }, 'Invalid parameter: id (must be >= 1)');
    await refuse('twice', { id: 10 }, 'Invalid parameter: id (must be <= 9)');
  });

  it('refuses a body without `parameters`', async () => {
    for (const text of ['{}', '{"symbol":"BTC"}', ''])
      await assertRefused(await send('strict', text), 400, 'Request body must have parameters');
  });

  it('stands in the OpenAPI document, and so do schemas', async () => {
    const text = await (await fetch(`${service.url}/openapi.json`)).text();
    assert.ok(!text.includes('LEAK'));
    const { paths } = JSON.parse(text);
    const schemaOf = (name: string) =>
      paths[`/endpoints/${service.ids[`api/${name}`]}`].post.requestBody.content['application/json'].schema;
    const symbol = { type: 'string', pattern: '^[A-Z]+$', description: 'Of what' };
    const { required, properties } = schemaOf('strict');
    assert.deepEqual(required, ['parameters']);
    assert.equal(properties.parameters.additionalProperties, false);
    const hidden = { type: ['string', 'number', 'boolean'] };
    assert.deepEqual(properties.parameters.properties, { symbol, hidden });
    const id = { allOf: [{ type: 'integer', minimum: 1, description: 'Of whom' }, { maximum: 9 }] };
    assert.deepEqual(schemaOf('twice').properties.parameters.properties, { id });
    assert.equal(schemaOf('lenient').required, undefined);
    assert.equal(schemaOf('lenient').properties.parameters.additionalProperties, true);
  });

  it('is off by default, and an endpoint may be exempt', async () => {
    for (const text of ['{}', '{"symbol":"BTC"}', '', '{"parameters":{"symbl":"BTC","tier":"x"}}'])
      assert.equal((await send('lenient', text)).status, 200);
  });
});
