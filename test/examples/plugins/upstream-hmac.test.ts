/** upstream-hmac signs requests to the upstream. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, it } from 'node:test';
import { example } from '../../support/examples.ts';
import { suite } from '../../support/lifetime.ts';
import { oneApi, serviceFor } from '../../support/service.ts';
import { faults, type RecordedRequest, upstreamFor } from '../../support/upstream.ts';

const SECRET = 'a secret of two parties';
const OTHER = 'another secret of theirs';

describe('upstream-hmac', async () => {
  const asked = async (name: string, parameters?: object): Promise<RecordedRequest> => {
    const response = await service.post(`api/${name}`, parameters);
    assert.equal(response.status, 200, await response.text());
    return upstream.requests.at(-1) ?? assert.fail('nothing was asked');
  };
  const signatureOf = ({ method, path, headers, body }: RecordedRequest, secret: string) =>
    createHmac('sha256', secret)
      .update(`${method}\n${upstream.url}${path}\n${headers['x-timestamp']}\n${body}`)
      .digest('hex');

  const upstream = await upstreamFor(suite, { '*': faults.json(7) });
  const endpoints = {
    e: { parameters: [{ name: 'q' }, { name: 'key', fixed: 's3cret', secret: true }] },
    posted: { method: 'POST', hmac: { secret: OTHER }, parameters: [{ name: 'q', in: 'body' }] },
  };
  const { apis } = oneApi(upstream.url, endpoints, { api: { hmac: { secret: SECRET } } });
  const { apis: others } = oneApi(upstream.url, { e: {} }, { api: { name: 'open' } });
  const plugins = [example('upstream-hmac')];
  const service = await serviceFor(suite, { settings: { plugins }, apis: [...apis, ...others] });

  it('signs the method, the URL and the time', async () => {
    const began = Math.floor(Date.now() / 1000);
    const request = await asked('e', { q: 'ü &' });
    assert.equal(request.path, '/e?q=%C3%BC%20%26&key=s3cret');
    assert.equal(request.headers['x-signature'], signatureOf(request, SECRET));
    const time = Number(request.headers['x-timestamp']);
    assert.ok(began <= time && time <= Date.now() / 1000);
  });

  it('and the body, with the secret of the endpoint', async () => {
    const request = await asked('posted', { q: 'ü' });
    assert.equal(request.body, '{"q":"ü"}');
    assert.equal(request.headers['x-signature'], signatureOf(request, OTHER));
  });

  it('leaves other APIs alone', async () => {
    assert.equal((await service.post('open/e')).status, 200);
    assert.equal(upstream.requests.at(-1)?.headers['x-signature'], undefined);
  });
});
