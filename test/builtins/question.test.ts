/** The question of a request is one for equal requests, and another for others. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parameters } from '../../builtins/parameters/index.ts';
import { parseMarked } from '../../lib/json/numbers.ts';
import { AskedQuestion, type Parameters, type Question, writtenParameters } from '../../plugins-sdk/index.ts';
import { testEndpoint, testPlugin } from '../../service/testing.ts';
import { requestHashOf } from '../../verify/index.ts';

const headers = { accept: 'application/json', 'user-agent': 'signed-data-proxy' };

const URL = 'http://upstream.test/v1/price';

const ENDPOINT = {
  path: '/price/{pair}',
  parameters: [
    { name: 'pair', in: 'path', required: true },
    { name: 'n' },
    { name: 'filter', in: 'body' },
    { name: 'key', in: 'header', fixed: 'hidden' },
    { name: 'token', secret: true },
    { name: 'page', default: 1 },
  ],
};

async function prepareFor(block: Readonly<Record<string, unknown>>, id: `0x${string}` = `0x${'11'.repeat(32)}`) {
  const endpoint = testEndpoint({ id, block, apiBlock: { url: 'http://upstream.test/v1/' } });
  const harness = await testPlugin(parameters, { services: { endpoints: [endpoint] } });
  return async (given: Parameters, variation = '', sent: Parameters = given, written?: string) => {
    const request = harness.request({ endpoint, parameters: sent });
    if (written !== undefined) writtenParameters.set(request.exchange, parseMarked(written) as Parameters);
    const outcome = await request.run('prepare', { parameters: given, variation });
    if ('refused' in outcome) return outcome.refused.message;
    assert.ok('value' in outcome);
    return outcome.value;
  };
}

function asked(question: Question | string): AskedQuestion {
  assert.ok(AskedQuestion.is(question), String(question));
  return question;
}

describe('the question of a request', () => {
  it('is its parameters, and the request that goes upstream', async () => {
    const prepare = await prepareFor(ENDPOINT);
    const question = asked(await prepare({ pair: 'a/b', n: 1, token: 't', filter: { x: 1 }, other: 1, key: 'no' }));
    assert.deepEqual(question.parameters, { pair: 'a/b', n: 1, filter: { x: 1 }, page: 1 });
    assert.deepEqual(question.reserved, {});
    assert.equal(question.requestHash, undefined);
    assert.deepEqual(question.request, {
      method: 'GET',
      url: 'http://upstream.test/v1/price/a%2Fb?n=1&token=t&page=1',
      headers: { key: 'hidden', 'content-type': 'application/json', ...headers },
      body: '{"filter":{"x":1}}',
    });
    for (const part of [question, question.parameters, question.request, question.request.headers])
      assert.ok(Object.isFrozen(part));
  });

  it('is checked as if the client had sent what a plugin has made of it', async () => {
    const prepare = await prepareFor({ ...ENDPOINT, strictParameters: true });
    const n = 2 ** 53;
    assert.equal(await prepare({}, '', { pair: 'a' }), 'Missing required parameter(s): pair');
    assert.equal(await prepare({ pair: 'a', odd: 1 }, '', { pair: 'a' }), 'Unknown parameter: odd');
    assert.equal(await prepare({ pair: '..' }, '', { pair: 'a' }), 'Invalid parameter: pair');
    const written = '{"n":9007199254740993}';
    const kept = asked(await prepare({ pair: 'a', n }, '', { pair: 'b', n }, written));
    assert.deepEqual([kept.parameters.n, kept.request.url], [n, `${URL}/a?n=9007199254740993&page=1`]);
    assert.equal(kept.with({ ...kept.parameters, pair: 'c' }).request.url, `${URL}/c?n=9007199254740993&page=1`);
    const changed = asked(await prepare({ pair: 'a', n: 2 }, '', { pair: 'b', n }, written));
    assert.equal(changed.request.url, `${URL}/a?n=2&page=1`);
  });

  it('keeps its key and its request hash when other parameters go upstream', async () => {
    const prepare = await prepareFor({ ...ENDPOINT, receipt: true });
    const question = asked(await prepare({ pair: 'a', token: 't' }));
    assert.equal(question.requestHash, requestHashOf({ pair: 'a', page: 1 }));
    const other = question.with({ pair: 'b', page: 2, token: 'changed', key: 'changed' });
    assert.equal(other.request.url, 'http://upstream.test/v1/price/b?token=t&page=2');
    assert.equal(other.request.headers.key, 'hidden');
    assert.deepEqual(other.parameters, { pair: 'b', page: 2, token: 'changed', key: 'changed' });
    assert.deepEqual([other.key, asked(other).requestHash], [question.key, question.requestHash]);
    assert.throws(() => question.with({}), { message: 'Missing required parameter(s): pair' });
    assert.equal(question.with(question.parameters).request, question.request);
  });

  it('holds the reserved parameters that were sent, in its key and its hash, too', async () => {
    const encoding = { type: '*', path: '$.a', times: '*' };
    const prepare = await prepareFor({ ...ENDPOINT, encoding, receipt: true });
    const one = asked(await prepare({ pair: 'a', _type: 'int256', _path: '$.b' }));
    assert.deepEqual(one.reserved, { _type: 'int256' });
    assert.equal(one.requestHash, requestHashOf({ pair: 'a', page: 1, _type: 'int256', _times: null }));
    const others = [{ _type: 'uint256' }, { _type: 'int256', _times: 1 }, { _type: 'int256', _times: '1' }, {}];
    const keys = await Promise.all(others.map(async (given) => asked(await prepare({ pair: 'a', ...given })).key));
    assert.equal(new Set([one.key, ...keys]).size, 5);
  });

  it('is the same one for the very same parameters, and another where anything else differs', async () => {
    const [prepare, elsewhere] = [await prepareFor(ENDPOINT), await prepareFor(ENDPOINT, `0x${'22'.repeat(32)}`)];
    const given = Object.freeze({ pair: 'a', n: 1 });
    const first = asked(await prepare(given));
    assert.equal(await prepare(given), first);
    assert.notEqual(asked(await elsewhere(given)).key, first.key);
    assert.notEqual(asked(await prepare(given, '\n["p","t"]')).key, first.key);
    assert.notEqual(asked(await prepare(given, '', given, '{"n":1.00000000000000000001}')).key, first.key);
    assert.equal(asked(await prepare(given)).key, first.key);
  });
});
