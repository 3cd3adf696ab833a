/** Crawlers and agents are told what is sold, and nothing that is not. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { checkEndpointSchema, discoverOriginSchema, getWarningsForL2 } from '@agentcash/discovery';
import { DEFAULT_ASSETS } from '@x402/evm';
import { dollarsOf, domainOf } from '../../builtins/auth-x402-exact/dollars.ts';
import { loadObject } from '../support/config.ts';
import { suite } from '../support/lifetime.ts';
import { serviceFor } from '../support/service.ts';
import { RECIPIENT } from '../support/x402.ts';

const USDC = { network: 'eip155:8453', asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' };
const OTHER = { network: 'eip155:1', asset: `0x${'11'.repeat(20)}` };
const accept = (amount: string, token = USDC) => ({
  ...{ ...token, amount, payTo: RECIPIENT, extra: { name: 'USD Coin', version: '2' } },
});
const exact = (accepts: readonly object[], more: object = {}) => {
  return { type: 'x402-exact', facilitator: 'http://127.0.0.1:9', accepts, ...more };
};
const KEY = { type: 'apiKey', keys: ['0123456789abcdef0123'] };

const auths = {
  paid: exact([accept('10000')]),
  either: [KEY, exact([accept('10000')])],
  keyed: KEY,
  free: { type: 'free' },
  stated: exact([accept('777', OTHER)], { price: '0.50 USD' }),
  range: exact([accept('10000'), accept('2500000')]),
  unknown: exact([accept('777', OTHER)]),
};
const endpoints = Object.entries(auths).map(([name, auth]) => ({ name, path: `/${name}`, auth }));

function configWith(settings: object, more: object = {}) {
  return { settings, apis: [{ name: 'a', url: 'https://up.example', endpoints, ...more }] };
}

describe('what crawlers and agents are told', async () => {
  const service = await serviceFor(suite, configWith({ openapi: { title: 'Prices' } }));

  it('a crawler of paid APIs reads who is let in, and for how much', async () => {
    const found = await discoverOriginSchema({ target: service.url });
    assert.ok(found.found);
    const names = new Map(Object.entries(service.ids).map(([name, id]) => [`/endpoints/${id}`, name]));
    const read = found.endpoints.flatMap(({ path, authMode, price, protocols }) => {
      const name = names.get(path);
      return name === undefined ? [] : [[name, authMode, price, protocols]];
    });
    assert.deepEqual(read, [
      ['a/paid', 'paid', '0.01 USD', ['x402']],
      ['a/either', 'apiKey+paid', '0.01 USD', ['x402']],
      ['a/keyed', 'apiKey', undefined, undefined],
      ['a/free', 'unprotected', undefined, undefined],
      ['a/stated', 'paid', '0.5 USD', ['x402']],
      ['a/range', 'paid', '0.01-2.5 USD', ['x402']],
      ['a/unknown', 'paid', undefined, ['x402']],
    ]);
    const warnings = getWarningsForL2({ routes: found.endpoints, source: 'openapi' });
    const warned = warnings.map(({ code, path }) => [code, names.get(path ?? '')]);
    assert.deepEqual(warned, [['L2_DYNAMIC_PRICE_INCOMPLETE', 'a/unknown']]);
  });

  it('a crawler that asks an endpoint is told what to pay', async () => {
    const url = `${service.url}/endpoints/${service.ids['a/paid']}`;
    const found = await checkEndpointSchema({ url, sampleInputBody: {} });
    assert.ok(found.found);
    const advisory = found.advisories.find(({ method }) => method === 'POST');
    const options = advisory?.paymentOptions?.map((option) => {
      const { protocol, network, amount } = Object(option);
      return [protocol, network, amount];
    });
    assert.deepEqual(options, [['x402', 'eip155:8453', '10000']]);
  });

  it('the document says the network and the token, and needs no credential for a payment', async () => {
    const document = JSON.parse(await (await fetch(`${service.url}/openapi.json`)).text());
    const { security, 'x-payment-info': info } = document.paths[`/endpoints/${service.ids['a/either']}`].post;
    assert.deepEqual(security, [{ apiKey: [] }, {}]);
    const price = { mode: 'fixed', currency: 'USD', amount: '0.01' };
    assert.deepEqual(info, { price, ...USDC, protocols: [{ x402: {} }] });
    assert.deepEqual(Object.keys(document.components.securitySchemes), ['apiKey']);
  });

  it('/.well-known/x402 and /llms.txt list what is sold, by its public URL', async (t) => {
    const servers = ['https://answers.example.com/v1/'];
    const openapi = { title: 'Prices\n# of', description: 'All\u2028[of](evil) them', servers };
    const description = 'Said\r\n## by <b>`somebody`</b>';
    const parameters = [{ name: 'x', required: true }, { name: 'y' }];
    const one = { name: 'e', path: '/e', auth: auths.either, description, parameters };
    const free = { name: 'f', path: '/f', auth: auths.free };
    const service = await serviceFor(t, configWith({ openapi }, { endpoints: [one, free] }));
    const url = `https://answers.example.com/v1/endpoints/${service.ids['a/e']}`;
    const known = await fetch(`${service.url}/.well-known/x402`);
    assert.equal(known.headers.get('content-type'), 'application/json');
    assert.deepEqual(await known.json(), { version: 1, resources: [url] });
    const text = await fetch(`${service.url}/llms.txt`);
    assert.equal(text.headers.get('content-type'), 'text/plain; charset=utf-8');
    const [title, about, how = '', ...others] = (await text.text()).split('\n\n');
    assert.deepEqual([title, about], ['# Prices # of', '> All \\[of\\](evil) them']);
    assert.match(how, /^Ask an endpoint by `POST`/);
    const access = 'Access: credentials (apiKey) or 0.01 USD by x402. Parameters: x (required), y.';
    assert.deepEqual(others, [
      '## Endpoints',
      `- [a/e](${url}): Said ## by \\<b\\>\\\`somebody\\\`\\</b\\>. ${access}`,
      '## Documents',
      '- [OpenAPI](https://answers.example.com/v1/openapi.json): every endpoint, with schemas\n',
    ]);
  });

  const statuses = async (t: TestContext, { settings, ...config }: ReturnType<typeof configWith>) => {
    const service = await serviceFor(t, { ...config, settings: { ...settings, openapi: { title: 'Prices' } } });
    const { paths }: { paths: object } = JSON.parse(await (await fetch(`${service.url}/openapi.json`)).text());
    const of = async (path: string) => {
      const { status } = await fetch(service.url + path);
      assert.equal(path in paths, status === 200, `${path} in the document`);
      return status;
    };
    return [await of('/.well-known/x402'), await of('/llms.txt')];
  };
  const free = { endpoints: [{ name: 'f', path: '/f', auth: auths.free }] };

  it('nothing is told where it is not wanted, or nothing is sold; and all where the operator says so', async (t) => {
    assert.deepEqual(await statuses(t, configWith({})), [200, 200]);
    assert.deepEqual(await statuses(t, configWith({ discovery: false })), [404, 404]);
    assert.deepEqual(await statuses(t, configWith({}, free)), [404, 404]);
    assert.deepEqual(await statuses(t, configWith({ discovery: true }, free)), [404, 200]);
    const service = await serviceFor(t, configWith({ discovery: true }));
    const text = await (await fetch(`${service.url}/llms.txt`)).text();
    assert.match(text, /\n- \[a\/free\]\(\/endpoints\/0x[0-9a-f]{64}\): .+ Access: free\. Parameters: none\.\n/);
    assert.match(text, /\n- \[a\/unknown\]\(.+ Access: paid by x402\./);
  });

  it('validation recommends a URL to those who sell without one', async () => {
    const said = async (settings: object) => {
      const { plugins, endpoints: all, config } = await loadObject(configWith(settings));
      return plugins.find(({ definition }) => definition.name === 'discovery')?.definition.recommend?.(all, config);
    };
    assert.equal(
      await said({}),
      'publicUrl for a/paid, a/either, a/stated and 2 more: catalogues list nothing without its URL (settings.discovery: false: not wanted)',
    );
    assert.equal(await said({ discovery: false }), undefined);
    assert.equal(await said({ openapi: { servers: ['https://x.example'] } }), undefined);
  });

  it('the tokens that are dollars are those with EIP-3009 that the public library knows, by their domains', () => {
    for (const [network, assets] of Object.entries(DEFAULT_ASSETS)) {
      for (const { asset, assetTransferMethod, name, version } of assets) {
        const isKnown = assetTransferMethod === undefined;
        assert.equal(dollarsOf({ network, asset, amount: '1234500' }), isKnown ? '1.2345' : undefined, asset);
        const domain = isKnown ? `{ name: ${name}, version: '${version}' }` : undefined;
        assert.equal(domainOf({ network, asset }), domain, asset);
      }
    }
    const dollars = (amount: string) => dollarsOf({ ...USDC, amount });
    assert.deepEqual([dollars('1'), dollars('1000000'), dollars('12000000')], ['0.000001', '1', '12']);
  });
});
