/** The example client pays with the public library, and gets its answer. */
import assert from 'node:assert/strict';
import { afterEach, describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { launch, PACKAGE_ROOT } from '../cli/run.ts';
import { bundle } from '../support/bundle.ts';
import { blocksOf, readPage } from '../support/docs.ts';
import { suite } from '../support/lifetime.ts';
import { serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults } from '../support/upstream.ts';
import { verifyEncoded } from '../support/verify.ts';
import { RECIPIENT } from '../support/x402.ts';
import { PRICE } from '../support/x402-exact.ts';
import { shopFor } from '../support/x402-shop.ts';

const PROGRAM = fileURLToPath(new URL('../../examples/pay-x402.ts', import.meta.url));

describe('the example client that pays with the public library', async () => {
  const [program, shop] = await Promise.all([bundle(PROGRAM), shopFor(suite)]);
  const alice = await shop.market.wallet(1_000_000n);
  const parameters = [{ name: 'symbol', required: true }];
  const free = { auth: { type: 'free' } };
  const endpoints = { sync: { path: '/p', parameters }, stream: { mode: 'stream' }, async: { mode: 'async' }, free };
  const service = await serviceFor(suite, shop.config(endpoints));

  afterEach(() => shop.upstream.json('/p', { price: 7 }));

  const run = async (t: TestContext, endpoint: string, limits: object = {}, args: string[] = []) => {
    const { network, asset } = shop.market;
    const all = { node: TEST_ADDRESS, network, asset, max: String(PRICE), ...limits };
    const options = Object.entries(all).flatMap(([name, value]) => [`--${name}`, String(value)]);
    const given = [program, service.url, String(service.ids[`a/${endpoint}`]), ...options, ...args];
    const { ended } = launch(t, process.execPath, given, { env: { PAYER_PRIVATE_KEY: alice.key } });
    const { code, stdout, stderr } = await ended;
    assert.ok(!`${stdout}${stderr}`.includes(alice.key.slice(2)), 'the key is never shown');
    return { code, stdout, stderr };
  };
  const balance = () => shop.market.balance(RECIPIENT);

  it('buys a verified answer, whatever the mode', async (t) => {
    for (const endpoint of ['sync', 'stream', 'async']) {
      const had = await balance();
      const { code, stdout, stderr } = await run(t, endpoint, {}, ['--parameters', '{"symbol":"ETH"}']);
      assert.equal(code, 0, stderr);
      assert.match(stderr, /^paid with 0x[0-9a-f]{64}\n$/);
      assert.equal(BigInt((await verifyEncoded(JSON.parse(stdout), TEST_ADDRESS)).data), 7n);
      assert.equal(await balance(), had + PRICE);
    }
    assert.ok(shop.upstream.requests.some(({ path }) => path === '/p?symbol=ETH'));
  });

  it('pays nothing for what is free, too dear, in another token, or not there', async (t) => {
    const had = await balance();
    const free = await run(t, 'free');
    assert.deepEqual([free.code, free.stderr], [0, 'nothing was paid\n']);
    const dear = await run(t, 'stream', { max: PRICE - 1n });
    assert.equal(dear.code, 1);
    assert.match(dear.stderr, /rejected by spendControls/);
    const other = await run(t, 'stream', { asset: RECIPIENT });
    assert.equal(other.code, 1);
    shop.upstream.on('/p', faults.serverError());
    for (const [endpoint, text] of [
      ['stream', '502 API call failed'],
      ['async', '200 API call failed'],
    ] as const)
      assert.deepEqual(await run(t, endpoint), { code: 1, stdout: '', stderr: `${text}\n` });
    assert.equal(await balance(), had);
  });

  it('the lines in docs/payments.md buy one, too', async (t) => {
    const had = await balance();
    const [block] = blocksOf(await readPage('docs/payments.md')).filter(({ language }) => language === 'ts');
    const changes = {
      ' as `0x${string}`': '',
      "'eip155:8453'": `'${shop.market.network}'`,
      // Without a word from its owner the library pays in well-known tokens only.
      'fromConfig({': 'fromConfig({ spendControls: false,',
      "'0x…';": `'${service.ids['a/sync']}';`,
      'https://service.example': service.url,
      "'0x…'": `'${TEST_ADDRESS}'`,
    };
    const code = Object.entries(changes).reduce((text, [from, to]) => {
      assert.ok(text.includes(from), from);
      return text.replace(from, to);
    }, block?.text ?? '');
    const args = [
      '--import',
      import.meta.resolve('tsx'),
      '--input-type=module',
      '-e',
      `${code}\nconsole.log(verified);`,
    ];
    const { ended } = launch(t, process.execPath, args, { cwd: PACKAGE_ROOT, env: { PAYER_PRIVATE_KEY: alice.key } });
    const { stdout, stderr } = await ended;
    assert.match(stdout, /ok: true/, stderr);
    assert.equal(await balance(), had + PRICE);
  });

  it('shows no answer of another signer', async (t) => {
    const { code, stdout, stderr } = await run(t, 'stream', { node: RECIPIENT });
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /signed by/);
  });
});
