import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults, type Upstream, upstreamFor } from '../support/upstream.ts';
import { browserFor, skip, visit } from './browser.ts';

const OTHER_ADDRESS = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
const TOKEN = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const MARKUP = '</script><img src=x onerror=alert(1)>';
const BOLD = '<b id=injected onclick=alert(2)>bold</b>';
const GOOD = 'Signed by the pinned address';
/** What the page says before a person has pinned an address. */
const UNPINNED = 'Signed by the address that the service gives';

/** What a person can ask for without a key. */
const PRICES = [
  {
    name: 'spot',
    path: '/price',
    description: 'The price of one asset',
    parameters: [
      { name: 'symbol', required: true, description: 'Such as ETH' },
      { name: 'currency', default: 'usd' },
    ],
    encoding: { type: 'int256', path: '$.price', times: '1e18' },
  },
  { name: 'chosen', path: '/price', encoding: { type: '*', path: '*', times: '*' } },
  {
    name: 'several',
    path: '/price',
    encoding: { type: 'int256,bool,uint64', path: '$.price,$.open,$.updatedAt', times: '1e18,,' },
  },
  {
    name: 'bounded',
    path: '/price',
    parameters: [
      { name: 'days', required: true, schema: { type: 'integer', minimum: 1, maximum: 30 } },
      { name: 'currency', default: 'usd', schema: { enum: ['usd', 'eur', 7] } },
      { name: 'hidden', secret: true, schema: { const: 'hunter2' } },
    ],
  },
  { name: 'raw', path: '/report', description: 'JSON as it is' },
  { name: 'streamed', path: '/price', mode: 'stream' },
  { name: 'slow', path: '/slow', mode: 'async' },
  { name: 'hanging', path: '/hanging' },
  { name: 'broken', path: '/broken', mode: 'async' },
  { name: 'failing', path: '/failing' },
  {
    name: 'posted',
    path: '/posted',
    method: 'POST',
    parameters: [
      { name: 'query', in: 'body', required: true },
      { name: '__proto__', in: 'body' },
    ],
  },
];

const HOSTILE = [
  {
    name: BOLD,
    path: '/markup',
    description: MARKUP,
    parameters: [{ name: BOLD, description: MARKUP, default: MARKUP }],
  },
];

const FRAIL = [
  { name: 'kept', path: '/kept', cache: { maxAge: 1, staleIfError: '1h' } },
  { name: 'gone', path: '/failing?gone' },
];

const PAYMENT = { type: 'x402', network: 8453, rpc: 'http://127.0.0.1:1', recipient: OTHER_ADDRESS };
const WALLET = {
  network: 'eip155:8453',
  asset: TOKEN,
  amount: '10000',
  payTo: OTHER_ADDRESS,
  extra: { name: 'USD Coin', version: '2' },
};

/** What takes a key or a payment. */
const GUARDED = [
  { name: 'keyed', path: '/keyed' },
  { name: 'keyed-too', path: '/keyed-too' },
  {
    name: 'paid',
    path: '/report',
    method: 'POST',
    auth: { ...PAYMENT, token: `0x${'0'.repeat(40)}`, amount: '1000' },
  },
  { name: 'paid-in-token', path: '/paid', auth: { ...PAYMENT, token: TOKEN, amount: '2500000' } },
  {
    name: 'paid-by-wallet',
    path: '/bought',
    auth: { type: 'x402-exact', facilitator: 'http://127.0.0.1:1', accepts: [WALLET] },
  },
];

function configFor({ url }: Upstream) {
  const auth = { type: 'free' };
  const keyed = { type: 'apiKey', keys: ['the right key'] };
  return {
    settings: { explorer: true },
    apis: [
      { name: 'prices', url, auth, endpoints: PRICES },
      { name: MARKUP, url, auth, endpoints: HOSTILE },
      { name: 'frail', url, auth, breaker: { failures: 2, openFor: '1h' }, endpoints: FRAIL },
      { name: 'other', url, auth: keyed, endpoints: [{ name: 'other-key', path: '/other-key' }] },
      { name: 'guarded', url, auth: keyed, endpoints: GUARDED },
    ],
  };
}

describe('a person on the explorer page', { skip }, async () => {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const upstream = await upstreamFor(suite, {
    '/slow': async (...asked) => {
      await released;
      await faults.json({ late: true })(...asked);
    },
    '/hanging': () => undefined,
    '/markup': faults.json({ [BOLD]: MARKUP }),
    '/price': faults.json({ price: 3121.44, open: true, updatedAt: 1700000000 }),
    '/report': faults.json({ rows: [{ id: 1, total: 12.5 }], text: 'größer', none: null }),
    '/keyed': faults.json({ secret: 42 }),
    '/keyed-too': faults.json({ secret: 43 }),
    '/posted': faults.json({ ok: true }),
    '/broken': faults.json({}, 500),
    '/failing': faults.json({}, 500),
  });
  const service = await serviceFor(suite, configFor(upstream));
  const browser = await browserFor(suite);
  const { page, assertClean } = await visit(browser, service.url);
  // The page remembers nothing: who leaves it and comes back is new.
  beforeEach(() => page.goto('about:blank').then(() => undefined));
  afterEach(assertClean);

  const open = (endpoint: string) => page.goto(`${service.url}/#${service.ids[endpoint]}`);
  const send = () => page.getByRole('button', { name: 'Send request' }).click();
  const response = () => page.getByLabel('Response', { exact: true });
  const pinned = () => page.getByLabel('Pinned', { exact: true });
  const headline = async (text: string) => page.locator('.verdict').getByText(text, { exact: true }).waitFor();
  const recovered = () => page.locator('.recovered').innerText();
  const state = () => page.locator('.check').getAttribute('data-state');
  const signed = (text: string) => page.locator('.signed').getByText(text, { exact: true }).waitFor();
  const problem = (text: string) => page.getByRole('alert').getByText(text, { exact: true }).waitFor();

  const succeeds = async () => {
    await headline(UNPINNED);
    assert.equal(await state(), 'unpinned');
    assert.equal(await recovered(), TEST_ADDRESS);
    assert.equal(await pinned().inputValue(), TEST_ADDRESS);
  };

  const sendsWell = async () => {
    await send();
    await succeeds();
  };

  /** Changes what the field of the answer holds. */
  const tamper = async (change: (text: string) => string) => {
    const text = await response().inputValue();
    const changed = change(text);
    assert.notEqual(changed, text);
    await response().fill(changed);
  };

  it('asks with the keyboard alone and sees the address of the signer', async () => {
    await page.goto(`${service.url}/`);
    await page.getByRole('heading', { name: 'Ask, and see who signed' }).waitFor();
    const press = async (key: string, times = 1) => {
      for (let i = 0; i < times; i++) await page.keyboard.press(key);
    };
    assert.equal(await page.getByRole('navigation').getByRole('link').count(), 20);
    await press('Tab'); // The name of the page
    await press('Tab'); // The filter
    await page.keyboard.type('asset');
    assert.equal(await page.getByRole('navigation').getByRole('link').count(), 1);
    await press('Tab');
    await press('Enter');
    await page.getByRole('heading', { name: 'spot' }).waitFor();
    await press('Tab', 2); // Copy, then the first field
    await page.keyboard.type('ETH');
    await press('Enter');
    await succeeds();
    await page.getByText('200 OK').waitFor();
    assert.equal(upstream.requests.at(-1)?.path, '/price?symbol=ETH&currency=usd');
    const shown: Record<string, unknown> = JSON.parse(await response().inputValue());
    assert.deepEqual(Object.keys(shown), ['node', 'endpointId', 'timestamp', 'data', 'signature']);
    for (const text of ['3121.44', '3121440000000000000000', 'int256 × 1e18']) await signed(text);
  });

  it('sees of several values what each of them was multiplied by', async () => {
    await open('prices/several');
    const answer = page.locator('.about-endpoint dd').nth(3);
    assert.equal(
      await answer.innerText(),
      'int256 × 1e18, bool, uint64 at $.price,$.open,$.updatedAt, ABI-encoded, signed',
    );
    await sendsWell();
    const shown = await page
      .locator('.signed')
      .evaluate((list) => [...list.querySelectorAll('dt, strong, code')].map(({ textContent }) => textContent));
    assert.deepEqual(shown.slice(0, 8), [
      ...['int256 × 1e18', '3121.44', '3121440000000000000000'],
      ...['bool', 'true'],
      ...['uint64', '2023-11-14 22:13:20 UTC', '1700000000'],
    ]);
  });

  it('sees amber until the address is pinned that came from elsewhere, then green', async () => {
    await open('prices/raw');
    await sendsWell();
    const colour = () => page.evaluate(`getComputedStyle(document.querySelector('.check')).backgroundColor`);
    const amber = 'rgb(252, 243, 223)';
    assert.equal(await colour(), amber);
    await page.getByText('Paste the address that you got elsewhere').waitFor();
    await pinned().fill(TEST_ADDRESS);
    await headline(GOOD);
    assert.equal(await state(), 'good');
    assert.notEqual(await colour(), amber);
    await page.getByText('You pinned this address; the service gives the same one for itself.').waitFor();
  });

  it('changes one byte and sees it turn red, undoes it and sees it turn back', async () => {
    await open('prices/spot');
    await page.getByLabel('symbol').fill('ETH');
    await sendsWell();
    await tamper((text) => text.replace(/("data": "0x0{40})00/, '$101'));
    await headline('The signature does not match');
    assert.equal(await state(), 'bad');
    assert.notEqual(await recovered(), TEST_ADDRESS);
    assert.equal(await page.locator('.signed dd').count(), 0);
    await page.getByRole('button', { name: 'Undo changes' }).click();
    await succeeds();
    await tamper((text) => text.replace('{', ''));
    await headline('Not a signed answer');
    assert.equal(await state(), 'bad');
  });

  it('pins another address and sees red, pins no address and is told so', async () => {
    await open('prices/raw');
    await sendsWell();
    await page.getByText('a page cannot vouch for itself').waitFor();
    await pinned().fill(OTHER_ADDRESS);
    await headline('Signed by another address');
    assert.equal(await state(), 'bad');
    assert.equal(await recovered(), TEST_ADDRESS);
    await pinned().fill('0x1234');
    await headline('Nothing to compare with');
    assert.equal(await state(), 'bad');
    assert.equal(await pinned().getAttribute('aria-invalid'), 'true');
    await pinned().fill(` ${TEST_ADDRESS.toLowerCase()} `);
    await headline(GOOD);
    assert.equal(await pinned().getAttribute('aria-invalid'), 'false');
  });

  it('keeps the pinned address from one endpoint to the next, and past a request', async () => {
    await open('prices/raw');
    await pinned().fill(OTHER_ADDRESS);
    await page.getByRole('link', { name: /^streamed/ }).click();
    assert.equal(await pinned().inputValue(), OTHER_ADDRESS);
    await send();
    await headline('Signed by another address');
  });

  it('is not taken in by the answer of another endpoint', async () => {
    const other = await (await service.post('prices/raw')).text();
    await open('guarded/keyed');
    await page.getByLabel('X-Api-Key').fill('the right key');
    await sendsWell();
    await response().fill(other);
    await headline('The answer of another endpoint');
    assert.equal(await recovered(), TEST_ADDRESS);
  });

  it('sees raw JSON, of which every value is signed', async () => {
    await open('prices/raw');
    const answer = page.locator('.about-endpoint dd').nth(3);
    assert.equal(await answer.innerText(), 'the upstream’s JSON, its numbers as doubles, signed');
    await sendsWell();
    const { rawData } = JSON.parse(await response().inputValue());
    assert.deepEqual(rawData, { rows: [{ id: 1, total: 12.5 }], text: 'größer', none: null });
    await tamper((text) => text.replace('12.5', '12.6'));
    await headline('The signature does not match');
    await tamper((text) => text.replace('12.6', '1.25e1'));
    await headline(UNPINNED);
  });

  it('reads the event of a stream', async () => {
    await open('prices/streamed');
    await sendsWell();
    assert.equal(JSON.parse(await response().inputValue()).done, true);
  });

  it('waits for an async answer', async () => {
    await open('prices/slow');
    await send();
    await page.getByText('Accepted; in progress…').waitFor();
    assert.equal(await state(), 'none');
    release();
    await succeeds();
    assert.equal(JSON.parse(await response().inputValue()).status, 'complete');
  });

  it('is told why an async request failed', async () => {
    await open('prices/broken');
    await send();
    await problem('API call failed');
    assert.equal(JSON.parse(await response().inputValue()).status, 'failed');
    assert.equal(await page.locator('.check').isVisible(), false);
  });

  it('stops waiting', async () => {
    await open('prices/hanging');
    await send();
    await upstream.until(() => upstream.open === 1);
    await page.getByRole('button', { name: 'Stop' }).click();
    await problem('Stopped before an answer came.');
    await upstream.untilAborted('/hanging');
    assert.equal(await page.getByRole('button', { name: 'Stop' }).isVisible(), false);
  });

  it('is told that there is no service', async () => {
    await open('prices/raw');
    await page.context().setOffline(true);
    await send();
    await page.getByText('The service cannot be reached').waitFor();
    await page.context().setOffline(false);
    await sendsWell();
  });

  it('chooses an encoding', async () => {
    await open('prices/chosen');
    await send();
    assert.equal(await page.getByText('This is required.').count(), 3);
    const ask = async (type: string, path: string, times: string) => {
      for (const [label, text] of Object.entries({ _type: type, _path: path, _times: times }))
        await page.getByLabel(label).fill(text);
      await page.keyboard.press('Enter');
    };
    await ask('uint256', '$.price', '100');
    await succeeds();
    await signed('312144');
    await ask('uint256,string', '$.price,$.price', '1,');
    for (const text of ['"3121.44"', '3121']) await signed(text);
  });

  it('sees what a parameter must be, chooses among its values, and is told what is wrong', async () => {
    await open('prices/bounded');
    const hints = await page.locator('.field .hint').allInnerTexts();
    assert.ok(hints.includes('Must be a whole number, at least 1, at most 30.'), hints.join('\n'));
    assert.ok(!(await page.content()).includes('hunter2'));
    const currency = page.getByLabel('currency');
    assert.deepEqual(await currency.locator('option').allInnerTexts(), ['default: usd', 'usd', 'eur', '7']);
    const days = page.getByLabel('days');
    await days.fill('31');
    await send();
    await problem('Invalid parameter: days (must be <= 30)');
    await days.fill('30');
    await sendsWell();
    assert.equal(upstream.requests.at(-1)?.path, '/price?days=30&currency=usd');
    await currency.selectOption('7');
    await send();
    await upstream.until(() => upstream.requests.at(-1)?.path === '/price?days=30&currency=7');
    await succeeds();
  });

  it('needs a key where one is asked for', async () => {
    await open('guarded/keyed');
    await send();
    await problem('Missing X-Api-Key header');
    assert.equal(await page.locator('.check').isVisible(), false);
    const key = page.getByLabel('X-Api-Key');
    assert.equal(await key.getAttribute('type'), 'password');
    await key.fill('the wrong key');
    await key.press('Enter');
    await problem('Invalid API key');
    await key.fill('the right key ✓');
    await key.press('Enter');
    await page.getByText('A header cannot carry this').waitFor();
    await key.fill('the right key');
    await key.press('Enter');
    await succeeds();
    assert.equal(await page.evaluate('localStorage.length + sessionStorage.length'), 0);
    assert.equal(await page.evaluate('document.cookie'), '');
  });

  it('types a key once for all endpoints of its API, and for no other', async () => {
    await open('guarded/keyed');
    await page.getByLabel('X-Api-Key').fill('the right key');
    await page.getByRole('link', { name: /^keyed-too/ }).click();
    assert.equal(await page.getByLabel('X-Api-Key').inputValue(), 'the right key');
    await sendsWell();
    await page.getByLabel('X-Api-Key').fill('another key');
    await page.goBack();
    assert.equal(await page.getByLabel('X-Api-Key').inputValue(), 'another key');
    await page.getByRole('link', { name: /^other-key/ }).click();
    assert.equal(await page.getByLabel('X-Api-Key').inputValue(), '');
    await page.reload();
    assert.equal(await page.getByLabel('X-Api-Key').inputValue(), '');
  });

  it('is told what to do when the upstream fails, with the ID of the request', async () => {
    await open('prices/failing');
    await send();
    await problem('API call failed');
    const id = await page.locator('.request code').innerText();
    assert.match(id, /^0x[0-9a-f]{64}$|^[\w-]{8,}$/);
    const advice =
      'The service is up, but the API behind it failed. Try again in a minute. If that does not help, send the operator the request ID above: the log says what failed.';
    assert.equal(await page.locator('.advice').innerText(), advice);
    upstream.json('/failing', { ok: true });
    await sendsWell();
    assert.equal(await page.locator('.advice').innerText(), '');
    upstream.json('/failing', {}, 500);
  });

  it('is told that an answer is an older one, and when to ask a host again that is asked no more', async () => {
    await open('frail/kept');
    const answer = page.locator('.about-endpoint dd').nth(3);
    const remark = 'where the upstream fails an older one, of at most 3601 s';
    assert.equal(await answer.innerText(), `the upstream’s JSON, its numbers as doubles, signed; ${remark}`);
    upstream.json('/kept', { price: 1 });
    await sendsWell();
    assert.match(await page.locator('.status').innerText(), /^200 OK, \d+ ms$/);
    upstream.json('/kept', {}, 500);
    await send();
    await page.getByText(/^200 OK, \d+ ms: an older answer, since the upstream fails$/).waitFor();
    await succeeds();
    await page.goto(`${service.url}/`);
    await page.getByRole('button', { name: 'Last value of kept' }).click();
    await page.getByText('{"price":1} older, since the upstream fails', { exact: true }).waitFor();
    await open('frail/gone');
    await send();
    await page.getByText(/^Upstream unavailable\. Try again in 3[56]\d\d s\.$/).waitFor();
    const advice = 'If that does not help, send the operator the request ID above: the log says what failed.';
    assert.equal(await page.locator('.advice').innerText(), advice);
  });

  it('sees what to pay, and why a proof is none', async () => {
    await open('guarded/paid');
    await send();
    const asks =
      'This endpoint asks for a payment of 1000 wei, 0.000000000000001 of the native coin of chain 8453. Its terms:';
    await problem(asks);
    const terms: Record<string, unknown> = JSON.parse(await response().inputValue());
    assert.deepEqual([terms.amount, terms.network, terms.recipient], ['1000', 8453, OTHER_ADDRESS]);
    const proof = page.getByLabel('X-Payment-Proof');
    await proof.fill('{"txHash":');
    await send();
    await page.getByText('This is not valid JSON').waitFor();
    await proof.fill('{\n  "txHash": "0x€"\n}');
    await proof.press('Control+Enter');
    await problem(`Invalid payment proof. ${asks}`);
  });

  it('sees in which unit a token is asked for', async () => {
    await open('guarded/paid-in-token');
    await send();
    await problem(
      `This endpoint asks for a payment of 2500000 in the smallest unit of the token ${TOKEN} on chain 8453. Its terms:`,
    );
  });

  it('sees what a wallet has to pay', async () => {
    await open('guarded/paid-by-wallet');
    await send();
    await problem(
      `This endpoint asks for a payment of 10000 in the smallest unit of the token ${TOKEN} on chain eip155:8453. Its terms:`,
    );
    await page.getByLabel('PAYMENT-SIGNATURE').waitFor();
  });

  it('is told beside the field what is wrong with a body', async () => {
    await open('prices/posted');
    const query = page.getByLabel('query');
    const before = upstream.requests.length;
    await query.fill('{"a": 1');
    await send();
    await page.locator('.field', { has: query }).getByText('This is not valid JSON').waitFor();
    assert.equal(await query.getAttribute('aria-invalid'), 'true');
    assert.equal(await page.locator(':focus').getAttribute('id'), await query.getAttribute('id'));
    assert.equal(upstream.requests.length, before);
    await query.fill('{"a": [1, null]}');
    await page.getByLabel('__proto__').fill('"own"');
    await query.press('Control+Enter');
    await succeeds();
    assert.equal(upstream.requests.at(-1)?.body, '{"query":{"a":[1,null]},"__proto__":"own"}');
  });

  it('reads markup in names, descriptions and answers as the text it is', async () => {
    await page.goto(`${service.url}/`);
    await page.getByRole('navigation').getByRole('link', { name: BOLD }).click();
    await page.getByRole('heading', { name: BOLD, level: 1 }).waitFor();
    assert.equal(await page.getByLabel(BOLD).getAttribute('placeholder'), MARKUP);
    assert.equal(await page.getByText(MARKUP, { exact: true }).count(), 5);
    await sendsWell();
    assert.deepEqual(JSON.parse(await response().inputValue()).rawData, { [BOLD]: MARKUP });
    assert.equal(await page.locator('img, #injected, b, script[src]').count(), 0);
    assert.equal(await page.title(), `${MARKUP}/${BOLD} · Signed data explorer`);
  });

  it('sees of each endpoint a card, and asks for the last value of a free one only by its button', async () => {
    const asked = upstream.requests.length;
    await page.goto(`${service.url}/`);
    const card = (name: string) => page.locator('.card', { has: page.getByRole('link', { name, exact: true }) });
    const facts = (name: string) => card(name).locator('dd').allInnerTexts();
    assert.deepEqual(await facts('several'), ['int256 × 1e18, bool, uint64', 'free', 'Show']);
    assert.deepEqual(await facts('keyed'), ['raw JSON', 'API key']);
    const coins = '1000 wei, 0.000000000000001 of the native coin of chain 8453';
    assert.deepEqual(await facts('paid'), ['raw JSON', 'payment (x402)', coins]);
    for (const name of ['keyed', 'paid', 'spot', 'chosen'])
      assert.equal(await card(name).getByRole('button').count(), 0);
    assert.equal(upstream.requests.length, asked);
    await page.getByRole('button', { name: 'Last value of several' }).click();
    await card('several').getByText('3121.44, true, 2023-11-14 22:13:20 UTC', { exact: true }).waitFor();
    assert.equal(upstream.requests.length, asked + 1);
    await page.getByLabel('Filter endpoints').fill('guarded/paid');
    assert.equal(await page.locator('.card:visible').count(), 3);
    await open('guarded/paid');
    const price = page.locator('.about-endpoint dt', { hasText: 'Price' }).locator('+ dd');
    assert.equal(await price.innerText(), coins);
  });

  it('follows a link to an endpoint that is no more', async () => {
    await page.goto(`${service.url}/#0x${'12'.repeat(32)}`);
    await page.getByRole('heading', { name: 'No such endpoint' }).waitFor();
    await page.goto(`${service.url}/#${service.ids['prices/raw']?.toUpperCase().replace('0X', '0x')}`);
    await page.getByRole('heading', { name: 'raw' }).waitFor();
    assert.equal(await page.getByRole('link', { name: /^raw/ }).getAttribute('aria-current'), 'page');
  });

  it('copies an id', async () => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await open('prices/raw');
    await page.getByRole('button', { name: 'Copy the endpoint ID' }).click();
    await page.getByText('Copied').waitFor();
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), service.ids['prices/raw']);
    // Over plain HTTP a page has no clipboard.
    await page.evaluate(`Object.defineProperty(navigator, 'clipboard', { value: undefined })`);
    await page.getByRole('button', { name: 'Copy the endpoint ID' }).click();
    await page.getByText('Selected').waitFor();
    assert.equal(await page.evaluate('String(getSelection())'), service.ids['prices/raw']);
  });

  it('reads it on a small screen, in light and in dark', async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
    const width = () => page.evaluate('document.documentElement.scrollWidth');
    await page.goto(`${service.url}/`);
    assert.equal(await background(), 'rgb(248, 248, 246)');
    assert.equal(await width(), 360);
    await page.emulateMedia({ colorScheme: 'dark' });
    assert.equal(await background(), 'rgb(18, 20, 24)');
    await page.getByRole('link', { name: /^spot/ }).click();
    await page.getByRole('navigation').waitFor({ state: 'hidden' });
    await page.getByLabel('symbol').fill('ETH');
    await page.keyboard.press('Enter');
    await succeeds();
    assert.equal(await width(), 360);
    await page.getByRole('link', { name: 'All endpoints' }).click();
    await page.getByRole('navigation').waitFor();
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  it('is safe from whatever else might get into the page', async () => {
    const { page } = await visit(browser, service.url);
    await page.goto(`${service.url}/`);
    const asked = upstream.requests.length;
    await assert.rejects(page.evaluate(`document.body.innerHTML = '<p>'`), /TrustedHTML/);
    await assert.rejects(page.evaluate(`fetch('${upstream.url}/')`), /Failed to fetch/);
    assert.equal(upstream.requests.length, asked);
    const ran = page.evaluate(`{
      const script = document.createElement('script');
      script.textContent = 'globalThis.ran = true';
      document.body.append(script);
    }`);
    await assert.rejects(ran, /TrustedScript/);
    await page.context().close();
  });
});
