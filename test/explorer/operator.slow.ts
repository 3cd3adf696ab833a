/** An operator tries an upstream on the page, in a real browser, and takes an encoding from there. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { launch, skip, visit } from './browser.ts';

const TOKEN = 'operator-token-01';

it('shows the operator what could be signed of an answer, and nobody without the token', { skip }, async (t) => {
  const markup = '<img src=x onerror=alert(1)>';
  const upstream = await upstreamFor(t, { '/price': faults.json({ price: 2064.5, 'a b': [markup] }) });
  const parameters = [{ name: 'symbol', required: true }];
  const encoding = { type: 'int256', path: '$.price' };
  const auth = { type: 'apiKey', keys: ['the-key-of-a-client'] };
  const endpoints = [{ name: 'spot', path: '/price', parameters, encoding }];
  const apis = [{ name: 'prices', url: upstream.url, auth, endpoints }];
  const service = await serviceFor(t, { settings: { explorer: { operatorToken: TOKEN } }, apis });

  const browser = await launch();
  t.after(() => browser.close());
  const { page, assertClean } = await visit(browser, service.url);
  await page.setViewportSize({ width: 360, height: 640 });
  await page.goto(`${service.url}/#${service.ids['prices/spot']}`);
  const part = page.getByRole('region', { name: 'For the operator' });
  const button = part.getByRole('button', { name: 'Try the upstream' });
  await button.click();
  await part.getByText('Invalid operator token: settings.explorer.operatorToken has the right one').waitFor();
  await part.getByLabel('Operator token').fill(TOKEN);
  await button.click();
  await part.getByText('prices/spot: 400 Missing required parameter(s): symbol').waitFor();
  assert.equal(upstream.requests.length, 0);
  await page.getByLabel('symbol').fill('ETH');
  await button.focus();
  await page.keyboard.press('Enter');
  await part.getByText('Nothing was signed.').waitFor();
  assert.deepEqual(
    upstream.requests.map(({ path }) => path),
    ['/price?symbol=ETH'],
  );
  assert.deepEqual(JSON.parse(await part.locator('pre').innerText()), { price: 2064.5, 'a b': [markup] });
  const texts = async (selector: string) => part.locator(selector).allInnerTexts();
  assert.deepEqual(await texts('dt'), ["$['a b'][0]", '$.price', 'As configured']);
  assert.deepEqual(await texts('dd p'), [
    `${JSON.stringify(markup)} → ${JSON.stringify(markup)}`,
    '2064.5 → 2064500000000000000000',
    '2064',
  ]);
  assert.deepEqual(await texts('dd code'), [
    `encoding: { type: 'string', path: "$['a b'][0]" }`,
    `encoding: { type: 'int256', path: "$.price", times: '1e18' }`,
    `encoding: { type: 'int256', path: "$.price" }`,
  ]);
  assert.equal(await page.evaluate('document.documentElement.scrollWidth > innerWidth'), false);
  assertClean();
});
