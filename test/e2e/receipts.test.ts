/** A receipt tells what was asked, and is signed with the answer. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { Wallet } from 'ethers';
import { verifyResponse } from '../../verify/index.ts';
import { finished, submitted } from '../support/async.ts';
import { errorsOf } from '../support/config.ts';
import { assertRefused, endpointUrl, postText } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { type AnswerWithReceipt, type Asked, requestHash, verifyReceipt } from '../support/receipts.ts';
import { honest } from '../support/reclaim.ts';
import { oneApi, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

const NEXT_KEY = `0x${'22'.repeat(32)}`;
const next = new Wallet(NEXT_KEY);
const encoding = { type: 'uint256', path: '$.n' };
const symbol = [{ name: 'symbol', required: true }];
const inBody = [
  { name: 'filter', in: 'body' },
  { name: 'depth', in: 'body', default: 3 },
];
const cache = { maxAge: 600_000 };

/** Of the API, of which every endpoint has receipts unless it says otherwise. */
const endpoints = {
  encoded: { encoding, parameters: symbol },
  raw: { parameters: symbol },
  empty: { path: '/empty' },
  cached: { encoding, parameters: [{ name: 'id' }, { name: 'by', default: 'day' }], cache },
  wild: { encoding: { type: '*', path: '*', times: '*' }, cache },
  path: { encoding: { type: 'uint256', path: '*' } },
  later: { encoding, parameters: symbol, mode: 'async' },
  live: { parameters: symbol, mode: 'stream' },
  chosen: {
    parameters: [
      { name: 'symbol', default: 'ETHUSD' },
      { name: 'limit', in: 'header', default: 10 },
      { name: 'open', default: true },
      { name: 'tier', fixed: 'gold' },
      { name: 'token', in: 'header', secret: true },
      { name: 'realm', default: 'inner', secret: true },
      { name: '__proto__' },
    ],
  },
  body: { method: 'POST', parameters: inBody },
  proven: { encoding, parameters: symbol, responseMatches: [{ type: 'regex', value: '"n":' }] },
  moving: { encoding, parameters: symbol, signatures: true },
  without: { encoding, parameters: symbol, receipt: false },
};

describe('receipts: an answer tells what was asked', async () => {
  let asked = 0;

  const upstream = await upstreamFor(suite);
  upstream.on('*', (req, res, recorded) => faults.json({ n: ++asked, v: 'ü' })(req, res, recorded));
  upstream.on('/empty', faults.empty(204));
  const gateway = await upstreamFor(suite, { '*': honest });
  const settings = {
    proof: { type: 'reclaim', gatewayUrl: `${gateway.url}/` },
    signer: { type: 'environment', next: { type: 'environment' } },
  };
  const config = oneApi(upstream.url, endpoints, { settings, api: { receipt: true } });
  const service = await serviceFor(suite, config, { env: { SERVICE_NEXT_PRIVATE_KEY: NEXT_KEY } });

  beforeEach(() => {
    upstream.requests.length = 0;
  });

  /** Asks, and verifies the answer as one to `resolved`, with ethers and with the verification module. */
  const receiptOf = async (endpoint: string, given: Asked, resolved = given): Promise<AnswerWithReceipt> => {
    const response = await service.post(`api/${endpoint}`, given);
    assert.equal(response.status, 200);
    return verifyReceipt(response, resolved, TEST_ADDRESS);
  };

  it('an encoded answer has one, after all that it had before', async () => {
    const body = await receiptOf('encoded', { symbol: 'ETHUSD' });
    const fields = ['node', 'endpointId', 'timestamp', 'data', 'signature', 'receipt'];
    assert.deepEqual(Object.keys(body), fields);
    assert.deepEqual(Object.keys(body.receipt), ['requestHash', 'dataHash', 'signature']);
    assert.equal(body.receipt.requestHash, requestHash({ symbol: 'ETHUSD' }));
  });

  it('a raw answer has one, of the hash that is signed; `rawData: null` too', async () => {
    await receiptOf('raw', { symbol: 'ETHUSD' });
    const { rawData } = await receiptOf('empty', {});
    assert.equal(rawData, null);
  });

  it('the answer to one request is not that to another', async () => {
    const parameters = { symbol: 'BTCUSD' };
    const doge = await receiptOf('encoded', { symbol: 'DOGEUSD' });
    const result = verifyResponse(doge, { node: TEST_ADDRESS, endpointId: doge.endpointId, parameters });
    assert.equal(result.ok ? 'accepted' : result.reason, 'request');
    assert.equal(verifyResponse(doge, { node: TEST_ADDRESS, endpointId: doge.endpointId }).ok, true);
  });

  it('what is declared counts, defaults included; not what is fixed, secret or unknown', async () => {
    const defaults = { symbol: 'ETHUSD', limit: 10, open: true };
    await receiptOf('chosen', {}, defaults);
    await receiptOf('chosen', { symbol: null }, defaults);
    await receiptOf('chosen', { token: 'a', realm: 'b', tier: 'c', unknown: 'd' }, defaults);
    await receiptOf('chosen', { symbol: '€ "\\', limit: 2.5, open: false });
    const special: Asked = JSON.parse('{"__proto__":"x"}');
    await receiptOf('chosen', special, { ...defaults, ...special });
  });

  it('reserved parameters count where the endpoint leaves the encoding open, as they were sent', async () => {
    const wild = { _type: 'uint256', _path: '$.n', _times: '100' };
    await receiptOf('wild', wild);
    await receiptOf('wild', { ...wild, _times: 100 });
    await receiptOf('path', { _path: '$.n', _type: 'string', _times: '7' }, { _path: '$.n' });
    await receiptOf('encoded', { symbol: 'x', _path: '$.v' }, { symbol: 'x' });
  });

  it('values of a body count as they are nested, in any order', async () => {
    const filter = { b: [1, { d: null, c: 'ü' }], a: 1e21 };
    await receiptOf('body', { filter }, { filter, depth: 3 });
    await receiptOf('body', { depth: null }, { depth: null });
    const text = '{"parameters":{"depth":3.0,"filter":{"a":1E21,"b":[1,{"c":"\\u00fc","d":null}]}}}';
    const response = await postText(endpointUrl(service, 'api/body'), text);
    await verifyReceipt(response, { filter, depth: 3 }, TEST_ADDRESS);
  });

  it('a cached answer repeats its receipt, and is never that of another request', async () => {
    const first = await receiptOf('cached', { id: '1' }, { id: '1', by: 'day' });
    assert.deepEqual(await receiptOf('cached', { by: 'day', id: '1' }, { id: '1', by: 'day' }), first);
    assert.equal(upstream.requests.length, 1);
    const number = await receiptOf('cached', { id: 1 }, { id: 1, by: 'day' });
    assert.notEqual(number.receipt.requestHash, first.receipt.requestHash);
    assert.deepEqual(new Set(upstream.requests.map(({ path }) => path)), new Set(['/cached?id=1&by=day']));
    assert.equal(upstream.requests.length, 2);
  });

  it('a factor as a number and as a text is encoded alike and asked for apart, in the cache too', async () => {
    const wild = { _type: 'uint256', _path: '$.n', _times: '7' };
    const text = await receiptOf('wild', wild);
    const number = await receiptOf('wild', { ...wild, _times: 7 });
    assert.notEqual(number.receipt.requestHash, text.receipt.requestHash);
    assert.deepEqual(await receiptOf('wild', wild), text);
    assert.equal(upstream.requests.length, 2);
  });

  it('requests that miss the cache together, of two kinds, each get their own', async () => {
    const ids = [5, '5', 5, '5', 5, '5'];
    const answers = await Promise.all(ids.map((id) => receiptOf('cached', { id, by: 'x' })));
    assert.equal(new Set(answers.map(({ receipt }) => receipt.signature)).size, 2);
    assert.equal(upstream.requests.length, 2);
  });

  it('an async record has one', async () => {
    const submission = await submitted(await service.post('api/later', { symbol: 'ETHUSD' }));
    assert.ok(!('receipt' in submission));
    await verifyReceipt(await finished(service, submission), { symbol: 'ETHUSD' }, TEST_ADDRESS);
  });

  it('the event of a stream has one', async () => {
    const text = await (await service.post('api/live', { symbol: 'ETHUSD' })).text();
    const body = JSON.parse(text.replace(/^data: /, ''));
    assert.equal(body.done, true);
    await verifyReceipt(body, { symbol: 'ETHUSD' }, TEST_ADDRESS);
  });

  it('an answer with a TLS proof has one before it', async () => {
    const body = await receiptOf('proven', { symbol: 'ETHUSD' });
    assert.deepEqual(Object.keys(body).slice(-3), ['signature', 'receipt', 'proof']);
  });

  it('is signed by the next signer as well, where an endpoint asks for both', async () => {
    const parameters = { symbol: 'ETHUSD' };
    const body = await receiptOf('moving', parameters);
    const [, entry] = body.signatures as readonly Readonly<Record<string, string>>[];
    const about = { signature: entry?.signature, receiptSignature: entry?.receiptSignature };
    const options = { node: next.address, endpointId: body.endpointId, parameters };
    const result = verifyResponse(body, options);
    assert.ok(result.ok, JSON.stringify(result));
    const { signer, signature, receiptSignature } = result;
    assert.deepEqual({ signer, signature, receiptSignature }, { ...about, signer: next.address });
    const other = verifyResponse(body, { ...options, parameters: { symbol: 'BTCUSD' } });
    assert.equal(other.ok ? 'accepted' : other.reason, 'request');
  });

  it('an endpoint says otherwise than its API, and has none', async () => {
    const body = JSON.parse(await (await service.post('api/without', { symbol: 'ETHUSD' })).text());
    assert.deepEqual(Object.keys(body), ['node', 'endpointId', 'timestamp', 'data', 'signature']);
  });

  it('what has no canonical JSON is refused, before any upstream call', async () => {
    const refuse = async (endpoint: string, parameters: Asked, error: string) => {
      await assertRefused(await service.post(`api/${endpoint}`, parameters), 400, error);
      assert.equal(upstream.requests.length, 0);
    };
    await refuse('encoded', { symbol: 'a\udc00' }, 'Invalid parameter: symbol');
    await refuse('body', { filter: [{ '\ud800': 1 }] }, 'Invalid parameter: filter');
    await refuse('wild', { _type: 'int256', _path: `$['\ud800']`, _times: '1' }, 'Invalid `_path` request parameter');
  });

  it('what is nested as deep as can be sent is asked and hashed', async () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    const url = endpointUrl(service, 'api/body');
    const filter = JSON.parse(nested(254));
    const deep = await postText(url, `{"parameters":{"filter":${nested(254)}}}`);
    const { receipt } = JSON.parse(await deep.text());
    assert.equal(receipt.requestHash, requestHash({ filter, depth: 3 }));
    const deeper = await postText(url, `{"parameters":{"filter":${nested(255)}}}`);
    await assertRefused(deeper, 400, 'Request body is nested too deeply');
  });

  it('is not warned of, nor recommended, where an endpoint does without', async (t) => {
    const other = await serviceFor(t, oneApi(upstream.url, { one: { parameters: symbol } }));
    assert.ok(other.logs.every(({ level, message }) => level === 'info' && !/receipt/.test(message)));
  });

  it('goes with its plugin', async () => {
    const off = { plugins: [{ source: 'builtin:receipt', enabled: false }] };
    const [error = ''] = await errorsOf(oneApi(upstream.url, { one: {} }, { settings: off, api: { receipt: true } }));
    assert.match(error, /^apis\[0\]\.receipt: unknown key/);
  });
});
