/** Whoever has a key, or needs none, is let in, and nobody else. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertRefused, endpointUrl, JSON_HEADERS, postText } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { exchangeRaw, parseResponse, requestHead } from '../support/raw-http.ts';
import { oneApi, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyRaw } from '../support/verify.ts';

const MISSING = 'Missing X-Api-Key header';
const WRONG = 'Invalid API key';

describe('auth free and apiKey', async () => {
  const upstream = await upstreamFor(suite, { '*': faults.json({ secret: 'paid for' }) });
  const keys = (...keys: string[]) => ({ type: 'apiKey', keys });
  const keyed = {
    inherits: {},
    opens: { auth: { type: 'free' } },
    own: { auth: keys('Own-Key') },
    async: { mode: 'async' },
    stream: { mode: 'stream' },
  };
  const auth = keys('Key-One', 'key two', 'clé', '0', 'a, b');
  const { apis } = oneApi(upstream.url, keyed, { api: { name: 'keyed', auth } });
  const bare = [
    { name: 'default', path: '/default' },
    { name: 'locked', path: '/locked', auth: keys('k') },
  ];
  const service = await serviceFor(suite, {
    apis: [...apis, { name: 'bare', url: upstream.url, endpoints: bare }],
  });

  const post = (endpoint: string, key?: string) =>
    service.post(endpoint, {}, key === undefined ? {} : { 'X-Api-Key': key });
  const answered = async (endpoint: string, key?: string) => {
    await verifyRaw(await post(endpoint, key), TEST_ADDRESS);
  };
  const refused = async (response: Response, error: string) => {
    const before = upstream.requests.length;
    await assertRefused(response, 401, error);
    assert.equal(upstream.requests.length, before);
  };

  it('401 Missing X-Api-Key header', async () => refused(await post('keyed/inherits'), MISSING));

  it('the key in another place is a missing header', async () => {
    const url = endpointUrl(service, 'keyed/inherits');
    await refused(await postText(`${url}?X-Api-Key=Key-One`, '{"parameters":{"X-Api-Key":"Key-One"}}'), MISSING);
    await refused(await postText(url, '{}', { ...JSON_HEADERS, Authorization: 'Bearer Key-One' }), MISSING);
  });

  for (const key of ['Key-One', 'key two', '0', 'a, b', 'clé']) {
    it(`every one of several keys opens: ${key}`, () => answered('keyed/inherits', key));
  }

  const wrong = [
    ...['wrong', 'key-one', 'KEY-ONE', 'Key-One1', 'Key-On', 'Key-One,', 'Key-One, key two', 'Key', '"Key-One"'],
    ...['undefined', 'null', 'true', '*', '__proto__', '\xff\xfe', 'x'.repeat(15_000)],
  ];
  for (const key of wrong) {
    it(`401 Invalid API key: ${key.slice(0, 40)}`, async () => refused(await post('keyed/inherits', key), WRONG));
  }

  const raw = async (key: Record<string, string>, more = '') => {
    const path = new URL(endpointUrl(service, 'keyed/inherits')).pathname;
    const head = requestHead(`POST ${path}`, { ...JSON_HEADERS, ...key, 'Content-Length': '0' });
    const { status, body } = parseResponse(await exchangeRaw(service.url, `${head}${more}\r\n`));
    return status === 200 ? [status] : [status, body];
  };

  it('an empty header is a wrong key', async () => {
    assert.deepEqual(await raw({ 'X-Api-Key': '' }), [401, JSON.stringify({ error: WRONG })]);
  });

  it('two headers are one wrong key, even if one of them is right', async () => {
    const second = 'x-api-key: Key-One\r\n';
    assert.deepEqual(await raw({ 'X-Api-Key': 'Key-One' }, second), [401, JSON.stringify({ error: WRONG })]);
  });

  it('the header name is case-insensitive, white space round the value is none of it', async () => {
    assert.deepEqual(await raw({ 'x-API-key': ' \t Key-One \t ' }), [200]);
  });

  it('an endpoint’s auth overrides its API’s', async () => {
    await answered('keyed/opens');
    await answered('keyed/opens', 'wrong');
    await answered('keyed/own', 'Own-Key');
    await refused(await post('keyed/own', 'Key-One'), WRONG);
    await refused(await post('keyed/inherits', 'Own-Key'), WRONG);
    await refused(await post('bare/locked'), MISSING);
  });

  it('no auth on API and endpoint means free, with a start-up warning', async () => {
    await answered('bare/default');
    const warned = service.logs.filter(({ level }) => level === 'warn').map(({ message }) => message);
    const warnings = warned.filter((message) => !message.includes('.keys['));
    assert.equal(warnings.length, 1, warnings.join('\n'));
    assert.match(warnings[0] ?? '', /^apis\[1\]\.endpoints\[0\]/);
  });

  it('async and stream ask for the key before anything starts', async () => {
    for (const endpoint of ['keyed/async', 'keyed/stream']) {
      await refused(await post(endpoint), MISSING);
      await refused(await post(endpoint, 'wrong'), WRONG);
    }
    assert.equal((await post('keyed/async', 'Key-One')).status, 202);
    assert.equal((await post('keyed/stream', 'Key-One')).status, 200);
  });

  it('authentication comes before the parameters are validated, and after the body', async () => {
    const url = endpointUrl(service, 'keyed/inherits');
    await assertRefused(await postText(url, '[]'), 400, 'Request body must be an object');
  });

  it('keys never reach the upstream or the log', () => {
    const text = JSON.stringify([service.logs, upstream.requests]);
    for (const key of ['Key-One', 'key two', 'Own-Key', 'wrong', 'x-api-key']) assert.ok(!text.includes(key), key);
  });
});
