import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { stringify } from 'yaml';
import { folderWith, launch, PROGRAM } from '../cli/run.ts';
import { errorsOf, warningsOf } from '../support/config.ts';
import { leaveOut } from '../support/hide.ts';
import { eventually } from '../support/http.ts';
import { startTestService, TEST_KEY } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { RECIPIENT } from '../support/x402.ts';

const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const ZERO = `0x${'0'.repeat(40)}`;
const accept = {
  ...{ network: 'eip155:8453', asset: USDC, amount: '10000', payTo: RECIPIENT },
  extra: { name: 'USD Coin', version: '2' },
};
const terms = { type: 'x402-exact', facilitator: 'https://facilitator.example.com', accepts: [accept] };
const withHeaders = (headers: object) => ({ url: terms.facilitator, headers });
const config = (auth: unknown, more: object = {}) => ({
  apis: [{ name: 'a', url: 'https://api.example.com', auth, endpoints: [{ name: 'e', path: '/' }], ...more }],
});
const accepting = (...changes: object[]) =>
  config({ ...terms, accepts: changes.map((change) => ({ ...accept, ...change })) });
const AT = 'apis[0].auth';

describe('x402-exact in the config', () => {
  it('is sound as the documentation has it', async () => {
    const facilitator = withHeaders({ Authorization: 'Bearer x' });
    const whole = { ...terms, facilitator, publicUrl: 'https://a.example/api' };
    assert.deepEqual(await errorsOf(config(whole)), []);
    assert.deepEqual(await warningsOf(config(whole)), []);
    assert.deepEqual(await warningsOf(config([{ type: 'apiKey', keys: ['0123456789abcdef'] }, terms])), []);
  });

  it('an amount that is neither a text nor said by a plugin is refused with what is expected', async () => {
    const at = `${AT}.accepts[0].amount`;
    assert.deepEqual(await errorsOf(accepting({ amount: {} })), [
      `${at}.by: required key is missing`,
      `${at}.max: required key is missing`,
    ]);
    assert.deepEqual(await errorsOf(accepting({ amount: { base: '1', per: { n: '1' }, max: '9' } })), [
      `${at}.by: required key is missing`,
      `${at}.base: unknown key, known keys: by, max`,
      `${at}.per: unknown key, known keys: by, max`,
    ]);
  });

  it('signing in instead of paying is no key', async () => {
    assert.deepEqual(await errorsOf(config({ ...terms, signIn: true })), [
      `${AT}.signIn: unknown key, known keys: facilitator, publicUrl, price, accepts, type`,
    ]);
  });

  const wrong: [string, object, RegExp][] = [
    [
      'a network of another kind',
      accepting({ network: 'solana:mainnet' }),
      /^apis\[0\]\.auth\.accepts\[0\]\.network: /,
    ],
    ['a chain by number', accepting({ network: 'eip155:08453' }), /accepts\[0\]\.network: /],
    [
      'a checksum',
      accepting({ asset: USDC.replace('833589f', '833589F') }),
      /^apis\[0\]\.auth\.accepts\[0\]\.asset: the checksum of the address is wrong \(EIP-55\)$/,
    ],
    ['no token', accepting({ asset: ZERO }), /asset: is the zero address: only tokens can be paid by authorisation$/],
    ['nobody', accepting({ payTo: ZERO }), /payTo: is the zero address: payments would be lost$/],
    ['the token', accepting({ payTo: USDC.toLowerCase() }), /payTo: is the token itself: payments would be lost$/],
    ['nothing', accepting({ amount: '0' }), /accepts\[0\]\.amount: /],
    ['an amount with a fraction', accepting({ amount: '0.1' }), /accepts\[0\]\.amount: /],
    ['too much', accepting({ amount: String(2n ** 256n) }), /amount: is more than any token can hold \(a uint256\)$/],
    [
      'too much, said by a plugin',
      accepting({ amount: { by: 'p', max: String(2n ** 256n) } }),
      /amount\.max: is more than/,
    ],
    ['no domain', accepting({ extra: { name: '', version: '2' } }), /accepts\[0\]\.extra\.name: /],
    ['no time', accepting({ maxTimeoutSeconds: 0 }), /accepts\[0\]\.maxTimeoutSeconds: /],
    [
      'more than a header holds',
      accepting(
        ...Array.from({ length: 20 }, (_, i) => ({
          amount: String(i + 1),
          extra: { name: 'x'.repeat(200), version: '1' },
        })),
      ),
      /^apis\[0\]\.auth\.accepts: takes \d{5} characters in the header of a challenge, of 3000: leave out some ways to pay$/,
    ],
    ['nothing at all', config({ ...terms, accepts: [] }), /^apis\[0\]\.auth\.accepts: /],
    ['another scheme', config({ ...terms, facilitator: 'ftp://x' }), /^apis\[0\]\.auth\.facilitator: /],
    [
      'a password',
      config({ ...terms, facilitator: 'https://a:b@x.example' }),
      /facilitator: must be a URL without user name, password, query and fragment$/,
    ],
    [
      'a query',
      config({ ...terms, facilitator: 'https://x.example?key=1' }),
      /facilitator: must be a URL without user name, password, query and fragment$/,
    ],
    [
      'a header',
      config({ ...terms, facilitator: withHeaders({ 'a b': 'x' }) }),
      /headers\.a b: is no valid header name$/,
    ],
    [
      'its value',
      config({ ...terms, facilitator: withHeaders({ a: 'x\ny' }) }),
      /headers\.a: holds a character that no header can carry$/,
    ],
  ];
  for (const [what, given, expected] of wrong)
    it(`with ${what} is refused`, async () => {
      const errors = await errorsOf(given as Readonly<Record<string, unknown>>);
      assert.equal(errors.length, 1, errors.join('\n'));
      assert.match(errors[0] ?? '', expected);
    });

  it('warns of what will not work well', async () => {
    assert.deepEqual(await warningsOf(config([terms, { type: 'apiKey', keys: ['0123456789abcdef'] }])), [
      `${AT}[0]: is not the last method: who comes without credentials is not told what to pay; put it last`,
    ]);
    const short = config({ ...terms, accepts: [{ ...accept, maxTimeoutSeconds: 60 }] }, { timeout: 60_000 });
    assert.deepEqual(await warningsOf(short), [
      `${AT}.accepts[0].maxTimeoutSeconds: is not longer than the "timeout" of the API (60000 ms): a late answer finds its payment expired, and is not shown`,
    ]);
    assert.deepEqual(await warningsOf(config({ ...terms, facilitator: 'http://facilitator.example.com' })), [
      `${AT}.facilitator: is plain HTTP: anyone on the way could say that a payment is good, or read what is sent; use https`,
    ]);
  });

  it('warns of a known token on another chain, or with another domain, by which no payment verifies', async () => {
    assert.deepEqual(await warningsOf(accepting({ network: 'eip155:1' })), [
      `${AT}.accepts[0].asset: is known as a token on eip155:8453, and not on eip155:1`,
    ]);
    for (const extra of [
      { name: 'USDC', version: '2' },
      { name: 'USD Coin', version: '1' },
    ])
      assert.deepEqual(await warningsOf(accepting({ extra })), [
        `${AT}.accepts[0].extra: is not known as that of this token, and no payment verifies by another: { name: USD Coin, version: '2' }`,
      ]);
    assert.deepEqual(
      await warningsOf(accepting({ asset: `0x${'11'.repeat(20)}`, extra: { name: 'x', version: '9' } })),
      [],
    );
  });
});

describe('x402-exact at the start', () => {
  it('warns of a facilitator that does not support what is accepted, or is away', async (t) => {
    const facilitator = await upstreamFor(t);
    const kind = { x402Version: 2, scheme: 'exact', network: 'eip155:1' };
    const cases: [Parameters<typeof facilitator.on>[1], RegExp][] = [
      [faults.json({ kinds: [kind] }), /does not say that it settles exact payments on eip155:8453$/],
      [faults.json({ kinds: [{ ...kind, network: 'eip155:8453', x402Version: 1 }] }), /does not say that it settles/],
      [faults.serverError(), /could not be asked what it supports$/],
    ];
    for (const [handler, expected] of cases) {
      facilitator.on('/supported', handler);
      const service = await startTestService(config({ ...terms, facilitator: facilitator.url }));
      const told = await eventually(
        () => service.logs.find(({ message }) => message.includes('facilitator')),
        'a warning',
      );
      assert.equal(told.level, 'warn');
      assert.match(told.message, expected);
      await service.stop();
    }
    facilitator.json('/supported', { kinds: [{ ...kind, network: 'eip155:8453' }] });
    const service = await startTestService(config({ ...terms, facilitator: facilitator.url }));
    await facilitator.untilIdle();
    await service.stop();
    assert.ok(!service.logs.some(({ message }) => message.includes('facilitator')));
  });

  it('needs no package of the protocol', async (t) => {
    const cwd = await folderWith(t, {
      'exact.yaml': stringify({ version: '1.0', server: { port: 0 }, ...config(terms) }),
    });
    const started = launch(t, process.execPath, [...leaveOut('@x402/core'), PROGRAM, 'start', '-c', 'exact.yaml'], {
      cwd,
      env: { SERVICE_PRIVATE_KEY: TEST_KEY },
    });
    await started.output(/listening/);
    started.child.kill('SIGTERM');
    assert.equal((await started.ended).code, 0);
  });
});
