/** The explorer asks other operators, too, in a real browser: by keyboard, and on the screen of a phone. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Wallet } from 'ethers';
import { errorsOf } from '../support/config.ts';
import { serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';
import { launch, skip } from './browser.ts';

const OTHER = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const wallet = new Wallet(`0x${'11'.repeat(32)}`);

it('asks the operators of the config, and shows the median, the spread and who fails', { skip }, async (t) => {
  let asked = 0;
  const upstream = await upstreamFor(t, {
    '/price': (_req, res) => {
      asked += 1;
      res.end(`{"price":${2064 + asked}}`);
    },
  });
  const spot = { name: 'spot', path: '/price', encoding: { type: 'int256', path: '$.price', times: '1e18' } };
  const endpoints = [
    { ...spot, parameters: [{ name: 'symbol', required: true }] },
    { name: 'raw', path: '/price' },
  ];
  const apis = [{ name: 'prices', url: upstream.url, auth: { type: 'free' }, endpoints }];
  const other = await serviceFor(t, { apis }, { env: { SERVICE_PRIVATE_KEY: wallet.privateKey } });
  const operators = [
    { url: other.url, signer: wallet.address },
    { url: `${other.url}/`, signer: OTHER },
  ];
  const service = await serviceFor(t, { settings: { explorer: { operators } }, apis });
  const policy = (await fetch(service.url)).headers.get('content-security-policy') ?? '';
  assert.ok(policy.split('; ').includes(`connect-src 'self' ${other.url}`), policy);

  const browser = await launch();
  t.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 360, height: 640 } });
  page.setDefaultTimeout(30_000);
  await page.goto(`${service.url}/#${service.ids['prices/spot']}`);
  await page.getByLabel('symbol').fill('ETH');
  const button = page.getByRole('button', { name: 'Ask all 3 operators' });
  await button.focus();
  await page.keyboard.press('Enter');
  await page.getByText('2 of 3 answers are good.').waitFor();
  const shown = await page.getByRole('region', { name: 'All operators' }).locator('dt, dd').allInnerTexts();
  const pairs = shown.flatMap((text, i) => (i % 2 === 0 ? [[text, shown[i + 1]]] : []));
  // Three requests got 2065, 2066 and 2067, in no certain order; those of two count.
  const values = pairs
    .slice(2, 4)
    .map(([, value]) => Number(value))
    .sort();
  const [low = 0, high = 0] = values;
  assert.deepEqual(pairs.slice(0, 2), [
    ['Median', String((low + high) / 2)],
    ['Spread', String(high - low)],
  ]);
  assert.deepEqual(
    pairs.slice(2).map(([url]) => url),
    [`${service.url}/`, other.url, `${other.url}/`],
  );
  assert.equal(pairs[4]?.[1], `node: the response is signed by ${wallet.address}, not by ${OTHER}`);
  assert.equal(asked, 3);
  const wide = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
  assert.equal(wide, false);
  await page.goto(`${service.url}/#${service.ids['prices/raw']}`);
  await page.getByRole('heading', { name: 'raw', level: 1 }).waitFor();
  assert.equal(await button.count(), 0);
});

it('refuses a URL that could end its directive of the policy', async () => {
  const url = "https://x.example.com;script-src'unsafe-inline'";
  const errors = await errorsOf({ settings: { explorer: { operators: [{ url, signer: OTHER }] } } });
  assert.ok(
    errors.some((error) => error.includes('settings.explorer')),
    errors.join('\n'),
  );
});
