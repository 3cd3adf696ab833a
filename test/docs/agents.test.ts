/** What docs/agents.md shows works as shown. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { format } from 'node:util';
import { refusals } from '../../builtins/mcp/refusals.ts';
import { blocksOf, filesOf, readPage, wholeConfig } from '../support/docs.ts';
import { suite } from '../support/lifetime.ts';
import { serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { shopFor } from '../support/x402-shop.ts';
import { loadText } from './walk.ts';

const PAGE = 'docs/agents.md';
const page = await readPage(PAGE);
const KEY = 'the-key-of-an-agent';
/** Where a program finds this package by its name, and the others. */
const root = fileURLToPath(new URL('../..', import.meta.url));

describe(PAGE, async () => {
  const shop = await shopFor(suite);
  await mkdir(join(root, '.cache'), { recursive: true });
  const folder = await mkdtemp(join(root, '.cache', 'agents-'));
  const parameters = [{ name: 'symbol', required: true }];
  const endpoints = [
    {
      name: 'spot',
      path: '/p',
      parameters,
      auth: { type: 'apiKey', keys: [KEY] },
      description: 'The price of a coin now',
    },
    { name: 'open', path: '/p?open', parameters, auth: { type: 'free' } },
    { name: 'paid', path: '/p?paid', parameters },
  ];
  const { settings } = shop.config({});
  const apis = [{ name: 'prices', url: shop.upstream.url, auth: shop.auth, endpoints }];
  const service = await serviceFor(suite, { settings: { ...Object(settings), mcp: true }, apis });

  after(() => rm(folder, { recursive: true }));

  let runs = 0;
  /** What a program of the page prints: it runs here, since to load what it imports takes longer than all it does. */
  const printed = async (t: TestContext, name: string, env: Record<string, string>) => {
    const text = filesOf(page).get(name) ?? assert.fail(`no program ${name}`);
    runs += 1;
    const file = join(folder, `${runs}-${name}`);
    await writeFile(file, text.replace('https://prices.example.com', service.url));
    const lines: string[] = [];
    const log = t.mock.method(console, 'log', (...words: unknown[]) => lines.push(format(...words)));
    Object.assign(process.env, env);
    try {
      await import(file);
      return lines.join('\n');
    } finally {
      log.mock.restore();
      for (const variable of Object.keys(env)) delete process.env[variable];
    }
  };

  it('its configs can be used', async () => {
    const configs = blocksOf(page).filter(({ language }) => language === 'yaml');
    assert.equal(configs.length, 2);
    for (const { text } of configs) await loadText(wholeConfig(text));
  });

  it('an agent calls with its key', async (t) => {
    const output = await printed(t, 'call.mjs', { PRICES_KEY: KEY });
    assert.match(output, /^prices_spot: The price of a coin now\. The answer is signed; /);
    assert.match(output, /rawData: \{ price: 7 \}/);
    await assert.rejects(printed(t, 'call.mjs', { PRICES_KEY: 'wrong' }), { message: 'Invalid API key' });
  });

  it('an agent verifies', async (t) => {
    const pinned = { PINNED_SIGNER: TEST_ADDRESS, PINNED_ENDPOINT: service.ids['prices/open'] ?? '' };
    assert.equal(await printed(t, 'verify.mjs', pinned), '7');
    const other = { ...pinned, PINNED_ENDPOINT: `0x${'00'.repeat(32)}` };
    await assert.rejects(printed(t, 'verify.mjs', other), /^Error: the response is of endpoint/);
  });

  it('an agent pays', async (t) => {
    const { network, asset } = shop.market;
    const { key } = await shop.market.wallet(2500n);
    const env = { NETWORK: network, TOKEN: asset, WALLET_KEY: key };
    const output = await printed(t, 'pay.mjs', env);
    assert.match(output, /rawData: \{ price: 7 \}/);
    assert.match(output, /success: true/);
    await assert.rejects(printed(t, 'pay.mjs', env), /invalid_exact_evm_transaction_simulation_failed/);
  });

  it('says what is refused as it is', () => assert.ok(page.includes(`\`${refusals.host().message}\``)));
});
