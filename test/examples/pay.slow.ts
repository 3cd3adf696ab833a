/** The example client pays on chain once, and gets its answer. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Challenge, checkChallenge, fetchChallenge, type Limits } from '../../examples/pay/pay.ts';
import { verifyAnswer } from '../../examples/pay/signed-answer.ts';
import { launch } from '../cli/run.ts';
import { bundle } from '../support/bundle.ts';
import { chainFor } from '../support/chain.ts';
import { suite } from '../support/lifetime.ts';
import { encoding, serviceFor, TEST_ADDRESS } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { verifyEncoded, verifyRaw } from '../support/verify.ts';
import { deployToken, NATIVE, payer, RECIPIENT, relay, termsOn } from '../support/x402.ts';

const PROGRAM = fileURLToPath(new URL('../../examples/pay/pay.ts', import.meta.url));
const PRICE = 1_000_000n;

describe('the example client of a paid endpoint', async () => {
  const [chain, elsewhere, program] = await Promise.all([chainFor(suite), chainFor(suite, 31338), bundle(PROGRAM)]);
  const alice = payer(chain, 2);
  const token = await deployToken(alice);
  const upstream = await upstreamFor(suite);
  const rpc = await upstreamFor(suite);
  const terms = { ...termsOn(chain, PRICE), rpc: rpc.url };
  const parameters = [{ name: 'symbol', required: true }];
  const endpoints = [
    { name: 'sync', path: '/p', encoding, parameters },
    { name: 'token', path: '/p?token', encoding, auth: { ...terms, token: token.address } },
    { name: 'raw', path: '/p?raw' },
    { name: 'stream', path: '/p?stream', mode: 'stream', encoding },
    { name: 'async', path: '/p?async', mode: 'async' },
    { name: 'free', path: '/p?free', auth: { type: 'free' } },
  ];
  const service = await serviceFor(suite, { apis: [{ name: 'a', url: upstream.url, auth: terms, endpoints }] });

  beforeEach(() => {
    upstream.json('/p', { price: 7, b: [1, { d: null, c: 'x' }], a: 0.5 });
    rpc.on('/', relay(chain.url));
  });

  const run = async (
    t: TestContext,
    endpoint: string,
    {
      args = [],
      env = {},
      limits = {},
      words = [program],
    }: { args?: string[]; env?: Record<string, string>; limits?: Record<string, string>; words?: string[] } = {},
  ) => {
    const agreed = { node: TEST_ADDRESS, network: '31337', token: NATIVE, max: String(PRICE), ...limits };
    const options = Object.entries(agreed).flatMap(([name, value]) => [`--${name}`, value]);
    const { ended } = launch(
      t,
      process.execPath,
      [...words, service.url, `${service.ids[`a/${endpoint}`]}`, ...options, ...args],
      {
        env: { PAYER_PRIVATE_KEY: alice.privateKey, PAYER_RPC_URL: chain.url, ...env },
      },
    );
    const { code, stdout, stderr } = await ended;
    assert.ok(!`${stdout}${stderr}`.includes(alice.privateKey.slice(2)), 'the key is never shown');
    return { code, stdout, stderr };
  };
  const balance = () => chain.provider.getBalance(RECIPIENT);
  const hash = /0x[0-9a-f]{64}/;

  it('pays in the native asset and prints the verified answer', async (t) => {
    const before = await balance();
    const { code, stdout, stderr } = await run(t, 'sync', {
      args: ['--parameters', '{"symbol":"ETH"}', '--recipient', RECIPIENT],
    });
    assert.deepEqual([code, stderr.replace(hash, 'HASH')], [0, 'paid with HASH\n']);
    assert.equal(BigInt((await verifyEncoded(JSON.parse(stdout), TEST_ADDRESS)).data), 7n);
    assert.equal((await balance()) - before, PRICE);
    assert.equal(upstream.requests.at(-1)?.path, '/p?symbol=ETH');
  });

  it('pays in a token, from its source', async (t) => {
    const words = ['--import', import.meta.resolve('tsx'), PROGRAM];
    const { code, stdout, stderr } = await run(t, 'token', { limits: { token: token.address }, words });
    assert.equal(code, 0, stderr);
    await verifyEncoded(JSON.parse(stdout), TEST_ADDRESS);
  });

  it('understands raw answers, streams and async requests', async (t) => {
    for (const endpoint of ['raw', 'stream', 'async']) {
      const { code, stdout, stderr } = await run(t, endpoint);
      assert.equal(code, 0, stderr);
      const answer = JSON.parse(stdout);
      await (endpoint === 'stream' ? verifyEncoded(answer, TEST_ADDRESS) : verifyRaw(answer, TEST_ADDRESS));
    }
  });

  it('tries again while the node of the service lags behind', async (t) => {
    let asked = 0;
    rpc.on(
      '/',
      relay(chain.url, (answer, { method }) => {
        if (method !== 'eth_getTransactionReceipt') return answer;
        asked += 1;
        return asked === 1 ? { ...answer, result: null } : answer;
      }),
    );
    const { code, stderr } = await run(t, 'raw');
    assert.equal(code, 0, stderr);
    assert.equal(asked, 2);
  });

  it('proves a payment again whose answer was lost, without paying twice', async (t) => {
    upstream.on('/p', faults.serverError());
    const failed = await run(t, 'raw');
    assert.deepEqual([failed.code, failed.stdout], [1, '']);
    assert.match(failed.stderr, /^paid with 0x[0-9a-f]{64}\n502 API call failed\n$/);
    const [paid = ''] = hash.exec(failed.stderr) ?? [];
    upstream.json('/p', 1);
    const before = await balance();
    const { code, stdout, stderr } = await run(t, 'raw', { args: ['--paid', paid] });
    assert.deepEqual([code, stderr], [0, '']);
    await verifyRaw(JSON.parse(stdout), TEST_ADDRESS);
    assert.equal(await balance(), before);
    assert.equal((await run(t, 'raw', { args: ['--paid', paid] })).stderr, '401 Payment already used\n');
  });

  it('pays nothing where the challenge is not what was agreed, or the node is of another chain', async (t) => {
    const before = await balance();
    const cases: [Parameters<typeof run>[2], string][] = [
      [{ limits: { max: String(PRICE - 1n) } }, 'the challenge asks for 1000000, more than 999999'],
      [{ limits: { node: RECIPIENT } }, `the challenge asks for node ${TEST_ADDRESS}, not ${RECIPIENT}`],
      [{ limits: { token: token.address } }, `the challenge asks for token ${NATIVE}, not ${token.address}`],
      [{ args: ['--recipient', TEST_ADDRESS] }, `the challenge asks for recipient ${RECIPIENT}, not ${TEST_ADDRESS}`],
      [{ env: { PAYER_RPC_URL: elsewhere.url } }, 'the node is of chain 31338, not 31337'],
      [
        { env: { PAYER_RPC_URL: elsewhere.url }, limits: { network: '31338' } },
        'the challenge asks for network 31337, not 31338',
      ],
      [{ env: { PAYER_PRIVATE_KEY: '' } }, 'PAYER_PRIVATE_KEY is missing'],
    ];
    const outcomes = await Promise.all(cases.map(([options]) => run(t, 'raw', options)));
    for (const [index, [, text]] of cases.entries())
      assert.deepEqual(outcomes[index], { code: 1, stdout: '', stderr: `${text}\n` });
    const free = await run(t, 'free');
    assert.deepEqual(free, { code: 1, stdout: '', stderr: 'expected a challenge, got 200\n' });
    assert.equal(await balance(), before);
  });

  it('its parts can be used one by one', async () => {
    const request = { url: service.url, endpointId: `${service.ids['a/raw']}` };
    const limits: Limits = { node: TEST_ADDRESS.toLowerCase(), network: 31337, token: NATIVE, maxAmount: PRICE };
    const challenge = await fetchChallenge(request);
    checkChallenge(challenge, request, limits);
    const wrong: [Partial<Challenge>, string][] = [
      [
        { endpointId: `0x${'12'.repeat(32)}` },
        `the challenge asks for endpointId 0x${'12'.repeat(32)}, not ${request.endpointId}`,
      ],
      [{ expiresAt: 0 }, 'the challenge has expired'],
      [{ expiresAt: Number.NaN }, 'the challenge has expired'],
    ];
    for (const [change, message] of wrong)
      assert.throws(() => checkChallenge({ ...challenge, ...change }, request, limits), { message });
    const answer = JSON.parse(await (await service.post('a/free')).text());
    const id = `${service.ids['a/free']}`;
    verifyAnswer(answer, TEST_ADDRESS, id);
    assert.throws(() => verifyAnswer(answer, TEST_ADDRESS, request.endpointId), {
      message: 'the answer is for another endpoint',
    });
    assert.throws(
      () => verifyAnswer({ ...answer, rawData: 0 }, TEST_ADDRESS, id),
      /^Error: the answer is signed by 0x/,
    );
    assert.throws(() => verifyAnswer(answer, RECIPIENT, id), {
      message: `the answer is signed by ${TEST_ADDRESS}, not by ${RECIPIENT}`,
    });
  });
});
