/** hmac-auth lets in who signs a request with the shared secret, once. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, it } from 'node:test';
import { example } from '../../support/examples.ts';
import { assertRefused, endpointUrl, JSON_HEADERS, postText } from '../../support/http.ts';
import { suite } from '../../support/lifetime.ts';
import { exchangeRaw, parseResponse, requestHead } from '../../support/raw-http.ts';
import { oneApi, serviceFor } from '../../support/service.ts';
import { faults, upstreamFor } from '../../support/upstream.ts';

const SECRET = 'a secret of two parties';
const sign = (body: string, secret = SECRET) => createHmac('sha256', secret).update(body).digest('hex');

describe('hmac-auth', async () => {
  const post = (body: string, headers: Record<string, string>) =>
    postText(endpointUrl(service, 'api/e'), body, { ...JSON_HEADERS, ...headers });
  const body = '{ "parameters": {"q": "ü"} }\n';

  const upstream = await upstreamFor(suite, { '/e': faults.json(7) });
  const auth = [
    { type: 'hmac', secret: SECRET },
    { type: 'hmac', secret: 'another secret of theirs' },
  ];
  const plugins = [example('hmac-auth'), example('batch')];
  const endpoints = { e: { auth, parameters: [{ name: 'q' }] } };
  const service = await serviceFor(suite, oneApi(upstream.url, endpoints, { settings: { plugins } }));

  it('lets in who signed the bytes of the body, with any of the secrets', async () => {
    for (const signature of [sign(body), sign(body).toUpperCase(), sign(body, 'another secret of theirs')])
      assert.equal((await post(body, { 'X-Signature': signature })).status, 200);
    assert.equal(upstream.requests.at(-1)?.path, '/e?q=%C3%BC');
  });

  it('also where the body comes in chunks', async () => {
    const headers = { ...JSON_HEADERS, 'Transfer-Encoding': 'chunked', 'X-Signature': sign(body) };
    const head = requestHead(`POST /endpoints/${service.ids['api/e']}`, headers);
    const bytes = Buffer.from(body);
    const chunks = [bytes.subarray(0, 24), bytes.subarray(24)].flatMap((chunk) => [
      Buffer.from(`${chunk.length.toString(16)}\r\n`),
      chunk,
      Buffer.from('\r\n'),
    ]);
    const request = Buffer.concat([Buffer.from(`${head}\r\n`), ...chunks, Buffer.from('0\r\n\r\n')]);
    assert.equal(parseResponse(await exchangeRaw(service.url, request)).status, 200);
  });

  it('refuses all others', async () => {
    await assertRefused(await post(body, {}), 401, 'Missing X-Signature header');
    const wrong = [
      sign(body.trim()),
      sign(body, 'a secret of strangers'),
      sign(body).slice(2),
      'abc',
      'xyz!',
      `0x${sign(body)}`,
    ];
    for (const signature of wrong)
      await assertRefused(await post(body, { 'X-Signature': signature }), 401, 'Invalid signature of the body');
  });

  it('an empty body has a signature, too', async () => {
    assert.equal((await post('', { 'X-Signature': sign('') })).status, 200);
  });

  it('a request that another plugin makes has no body, and so no signature', async () => {
    const batch = JSON.stringify([{ endpointId: service.ids['api/e'] }]);
    const headers = { ...JSON_HEADERS, 'X-Signature': sign(batch) };
    const response = await postText(`${service.url}/batch`, batch, headers);
    assert.equal(await response.text(), '[{"status":401,"body":{"error":"Invalid signature of the body"}}]');
  });
});
