import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { validatePaymentRequiredDetailed } from '@agentcash/discovery';
import {
  bazaarResourceServerExtension,
  type DiscoveryExtension,
  declareDiscoveryExtension,
  extractDiscoveryInfo,
  validateDiscoveryExtension,
  validateDiscoveryExtensionSpec,
} from '@x402/extensions/bazaar';
import { endpointUrl, JSON_HEADERS } from '../support/http.ts';
import { suite } from '../support/lifetime.ts';
import { serviceFor } from '../support/service.ts';
import { askedFor, paidBy, payingFetch, payloadFor } from '../support/x402-exact.ts';
import { shopWithPayer } from '../support/x402-shop.ts';

const PUBLIC = 'https://answers.example.com';

describe('x402-exact: what catalogues are told of what is sold', async () => {
  const { shop, alice } = await shopWithPayer(suite);
  const symbol = { name: 'symbol', required: true, schema: { type: 'string', enum: ['ETH', 'BTC'] } };
  const words = Array.from({ length: 900 }, (_, i) => `w${i}`);
  const endpoints = {
    e: { description: 'A price', parameters: [symbol, { name: 'days', default: 3 }] },
    raw: { encoding: undefined },
    chosen: { encoding: { type: '*', path: '*' } },
    stream: { mode: 'stream' },
    async: { mode: 'async' },
    odd: { parameters: [{ name: 'id', required: true, schema: { type: 'string', pattern: '^[A-Z]{9}$' } }] },
    wide: { parameters: [{ name: 'w', schema: { type: 'string', enum: words } }] },
  };
  const settings = { openapi: { title: 'Prices', servers: [PUBLIC] } };
  const service = await serviceFor(suite, shop.config(endpoints, { settings }, { tags: ['price', 'oracle'] }));

  /** What catalogues are told stands in the body. */
  const required = async (endpoint: string) => JSON.parse(await (await service.post(endpoint)).text());
  const bazaarOf = async (endpoint: string) => (await required(endpoint)).extensions?.bazaar;
  const asked = (path: string) =>
    shop.facilitator.requests.filter((request) => request.path === path).map(({ body }) => JSON.parse(body));

  it('the extension is what the library makes of it, with the method', async () => {
    const input = { parameters: { symbol: 'ETH' } };
    const properties = {
      symbol: { type: 'string', enum: ['ETH', 'BTC'] },
      days: { type: ['string', 'number', 'boolean'], default: 3 },
    };
    const description = 'Parameters that are not listed are ignored';
    const parameters = { type: 'object', description, required: ['symbol'], properties, additionalProperties: true };
    const inputSchema = { type: 'object', required: ['parameters'], properties: { parameters } };
    const bazaar = await bazaarOf('a/e');
    const declared = declareDiscoveryExtension({ bodyType: 'json', input, inputSchema });
    const context = { method: 'POST', adapter: { getPath: () => '/' }, routePattern: '/endpoints' };
    const enriched = bazaarResourceServerExtension.enrichDeclaration?.(declared.bazaar, context);
    assert.deepEqual(bazaar, enriched);
  });

  it('of every endpoint the extension is one that facilitators take, and crawlers read', async () => {
    for (const endpoint of ['e', 'raw', 'chosen', 'stream', 'async', 'odd', 'wide']) {
      const response = await service.post(`a/${endpoint}`);
      const header = response.headers.get('payment-required') ?? '';
      const whole = JSON.parse(await response.text());
      const bazaar: DiscoveryExtension & Record<string, unknown> = whole.extensions.bazaar;
      assert.deepEqual(validateDiscoveryExtension(bazaar), { valid: true }, endpoint);
      assert.deepEqual(validateDiscoveryExtensionSpec(bazaar), { valid: true }, endpoint);
      const short = await askedFor(response);
      assert.equal(validatePaymentRequiredDetailed(whole).valid, true, endpoint);
      assert.ok(header.length <= 3200, `${endpoint}: ${header.length}`);
      assert.deepEqual(short.accepts, whole.accepts);
    }
  });

  it('a payment has it verified and settled with what was offered, and a facilitator can list it', async () => {
    const { resource, extensions } = await required('a/e');
    const listed = {
      resourceUrl: `${PUBLIC}/endpoints/${service.ids['a/e']}`,
      description: 'A price',
      mimeType: 'application/json',
      serviceName: 'Prices',
      tags: ['price', 'oracle'],
      x402Version: 2,
      routeTemplate: undefined,
      method: 'POST',
    };
    const at = endpointUrl(service, 'a/e');
    const body = '{"parameters":{"symbol":"ETH"}}';
    const response = await payingFetch(alice, shop.market)(at, { method: 'POST', headers: JSON_HEADERS, body });
    assert.equal(response.status, 200);
    for (const path of ['/verify', '/settle']) {
      const { paymentPayload, paymentRequirements } = asked(path).at(-1);
      assert.deepEqual(paymentPayload.extensions, { bazaar: extensions.bazaar });
      assert.deepEqual(paymentPayload.resource, resource);
      const { discoveryInfo, ...found } = extractDiscoveryInfo(paymentPayload, paymentRequirements) ?? {};
      assert.deepEqual(discoveryInfo, extensions.bazaar.info);
      assert.deepEqual({ ...found, extensions: undefined }, { ...listed, extensions: undefined });
    }
  });

  it('what was offered otherwise is dropped, and changes no terms', async () => {
    const paid = await payloadFor(service, 'a/e', alice);
    const before = asked('/settle').length;
    const bazaar = await bazaarOf('a/e');
    bazaar.info.input.method = 'GET';
    const extensions = { bazaar, other: { info: {} }, ['__proto__']: { bazaar } };
    const resource = { url: 'https://evil.example', serviceName: 'Evil' };
    const response = await service.post('a/e', { symbol: 'ETH' }, paidBy({ ...paid, extensions, resource }));
    assert.equal(response.status, 200, await response.text());
    const { paymentPayload, paymentRequirements } = asked('/settle')[before];
    const { resource: own, accepts, extensions: offered } = await required('a/e');
    assert.deepEqual(paymentPayload.extensions, { bazaar: offered.bazaar });
    assert.deepEqual(paymentPayload.resource, own);
    assert.deepEqual(paymentRequirements, accepts[0]);
    assert.equal(accepts[0].payTo, paid.accepted.payTo);
  });

  it('nobody is told where nobody knows the URL, or the operator wants none of it', async (t) => {
    const auth = { ...shop.auth, publicUrl: `${PUBLIC}/x/` };
    const configs = [
      [shop.config({ e: {} }), undefined, '/endpoints/'],
      [shop.config({ e: {} }, { settings: { discovery: false } }, { auth }), undefined, `${PUBLIC}/x/endpoints/`],
      [shop.config({ e: {} }, {}, { auth }), 'object', `${PUBLIC}/x/endpoints/`],
    ] as const;
    for (const [config, kind, url] of configs) {
      const other = await serviceFor(t, config);
      const { resource, extensions } = JSON.parse(await (await other.post('a/e')).text());
      assert.equal(typeof extensions.bazaar, kind ?? 'undefined');
      assert.equal(resource.url, `${url}${other.ids['a/e']}`);
    }
  });
});
