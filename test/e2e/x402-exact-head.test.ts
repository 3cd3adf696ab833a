/** The head of a challenge fits into the buffer of nginx as it is installed, whatever an endpoint offers and is called. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { errorsOf } from '../support/config.ts';
import { JSON_HEADERS } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { startProxy, withoutNginx } from '../support/nginx.ts';
import { openRaw, requestHead } from '../support/raw-http.ts';
import { serviceFor } from '../support/service.ts';
import { retried } from '../support/wait.ts';
import { askedFor, payingFetch } from '../support/x402-exact.ts';
import { shopFor } from '../support/x402-shop.ts';

const PUBLIC = 'https://data.example.com/prices/v1';
describe('the head of a challenge', async () => {
  const shop = await shopFor(suite);
  const [accept] = shop.auth.accepts;
  const accepting = (count: number) => ({
    ...shop.auth,
    publicUrl: PUBLIC,
    accepts: Array.from({ length: count }, (_, i) => ({ ...accept, amount: String(1000 + i) })),
  });
  const wide = Array.from({ length: 900 }, (_, i) => `w${i}`);
  const description = 'The price of an asset, in many words. '.repeat(40);
  const parameters = [{ name: 'w', schema: { type: 'string', enum: wide }, default: 'w0' }];
  const settings = { openapi: { title: 'Prices', servers: [PUBLIC] } };
  const configOf = (count: number) =>
    shop.config(
      { e: { description, parameters } },
      { settings },
      { auth: accepting(count), tags: ['price', 'oracle'] },
    );

  /** As many offers as the start takes. */
  const most = async () => {
    for (let count = 2; ; count++) if ((await errorsOf(configOf(count))).length > 0) return count - 1;
  };

  it('has less than 4,000 bytes with the longest offer that the start takes; the body has it all', async (t) => {
    const count = await most();
    assert.ok(count >= 5, `${count} offers`);
    const service = await serviceFor(t, configOf(count));
    const client = openRaw(service.url);
    const path = `/endpoints/${service.ids['a/e']}`;
    const headers = { ...JSON_HEADERS, Origin: `https://${'long.'.repeat(20)}example.com`, 'Content-Length': '2' };
    client.write(`${requestHead(`POST ${path}`, headers)}\r\n{}`);
    const [head = '', body = ''] = (await client.closed).split('\r\n\r\n');
    assert.match(head, /^HTTP\/1\.1 402 /);
    assert.ok(head.length < 4000, `${head.length} bytes`);
    const { resource, accepts, extensions } = JSON.parse(body);
    assert.equal(resource.description, description);
    assert.deepEqual([accepts.length, Object.keys(extensions)[0]], [count, 'bazaar']);
    const asked = await askedFor(await service.post('a/e'));
    assert.deepEqual(asked.resource, { url: `${PUBLIC}${path}`, mimeType: 'application/json' });
    assert.deepEqual([asked.accepts.length, Object.keys(asked.extensions)], [count, ['payment-identifier']]);
  });

  it('says at the start how many offers fit', async () => {
    const said = `only ${await most()} of 18 fit into the header of a challenge: shorten them or leave some out`;
    assert.deepEqual(await errorsOf(configOf(18)), [`apis[0].auth.accepts: ${said}`]);
  });

  it('passes nginx with its own buffers, which keeps the replica in use, and a wallet pays', {
    skip: withoutNginx,
  }, async (t) => {
    const service = await serviceFor(t, configOf(await most()));
    const proxy = await startProxy(t, [service.url], (config) => config.replaceAll(/^ *proxy_buffer.*\n/gm, ''));
    const url = `${proxy.url}/endpoints/${service.ids['a/e']}`;
    await retried(() => fetch(`${proxy.url}/health`));
    for (let count = 0; count < 5; count++) {
      const response = await fetch(url, { method: 'POST', headers: JSON_HEADERS, body: '{}' });
      assert.equal(response.status, 402);
      assert.equal((await fetch(`${proxy.url}/health`)).status, 200);
    }
    const buyer = await shop.market.wallet(1_000_000n);
    const paid = await payingFetch(buyer, shop.market)(url, { method: 'POST', headers: JSON_HEADERS, body: '{}' });
    assert.equal(paid.status, 200, await paid.text());
  });
});
