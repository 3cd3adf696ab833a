import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { requestHash } from '../support/receipts.ts';
import { oneApi, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
import { browserFor, skip, visit } from './browser.ts';

const GOOD = 'Signed by the address that the service gives';

describe('a person who asks for receipts on the explorer page', { skip }, async () => {
  const upstream = await upstreamFor(suite);
  upstream.json('/price', { price: 3121 });
  const parameters = [
    { name: 'symbol', required: true },
    { name: 'currency', default: 'usd' },
    { name: 'tier', fixed: 'gold' },
    { name: 'token', in: 'header', secret: true },
  ];
  const nested = [
    { name: 'filter', in: 'body' },
    { name: '__proto__', in: 'body' },
    { name: 'sizes', in: 'body', default: [1, { unit: 'm' }] },
  ];
  const endpoints = {
    price: { parameters, encoding: { type: 'uint256', path: '$.price', times: '*' } },
    nested: { path: '/price', method: 'POST', mode: 'async', parameters: nested },
  };
  const settings = { explorer: true };
  const service = await serviceFor(suite, oneApi(upstream.url, endpoints, { settings, api: { receipt: true } }));
  const { page, assertClean } = await visit(await browserFor(suite), service.url);
  afterEach(assertClean);

  const open = async (endpoint: string) => {
    await page.goto('about:blank');
    await page.goto(`${service.url}/#${service.ids[endpoint]}`);
  };
  const send = () => page.getByRole('button', { name: 'Send request' }).click();
  const response = () => page.getByLabel('Response', { exact: true });
  const headline = (text: string) => page.locator('.verdict').getByText(text, { exact: true }).waitFor();
  const succeeds = async (parameters: Readonly<Record<string, unknown>>) => {
    await headline(GOOD);
    await page.getByText('and its receipt is of the parameters that were sent.').waitFor();
    await page.locator('.signed').getByText('Request hash', { exact: true }).waitFor();
    await page.locator('.signed').getByText(requestHash(parameters), { exact: true }).waitFor();
  };

  it('sees that the receipt is of the parameters that were sent, and of what the service filled in', async () => {
    await open('api/price');
    const answer = page.locator('.about-endpoint dd').nth(3);
    assert.equal(await answer.innerText(), 'uint256 × _times at $.price, ABI-encoded, signed; with a receipt');
    await page.getByLabel('symbol').fill('ETH');
    await page.getByLabel('token').fill('not for all');
    await page.getByLabel('_times').fill('100');
    await send();
    await succeeds({ symbol: 'ETH', currency: 'usd', _times: '100' });
    assert.equal(await page.locator('.recovered').innerText(), TEST_ADDRESS);
  });

  it('sees red when the receipt is changed, is missing, or is of another request', async () => {
    await open('api/price');
    await page.getByLabel('symbol').fill('BTC');
    await page.getByLabel('_times').fill('1');
    await send();
    const asked = { symbol: 'BTC', currency: 'usd', _times: '1' };
    await succeeds(asked);
    const body = JSON.parse(await response().inputValue());
    const fill = (change: object) => response().fill(JSON.stringify({ ...body, ...change }));
    await fill({ receipt: { ...body.receipt, requestHash: requestHash({}) } });
    await headline('The receipt does not match');
    await fill({ receipt: undefined });
    await headline('No receipt');
    await response().fill(await (await service.post('api/price', { symbol: 'DOGE', _times: '1' })).text());
    await headline('The answer to another request');
    assert.equal(await page.locator('.signed dd').count(), 0);
    await page.getByRole('button', { name: 'Undo changes' }).click();
    await succeeds(asked);
  });

  it('sees the receipt of an async answer, of values and defaults as they are nested', async () => {
    await open('api/nested');
    await page.getByLabel('filter').fill('{"b":[1,null],"a":"ü"}');
    await page.getByLabel('__proto__').fill('"own"');
    await send();
    await succeeds(JSON.parse('{"filter":{"a":"ü","b":[1,null]},"__proto__":"own","sizes":[1,{"unit":"m"}]}'));
  });
});
