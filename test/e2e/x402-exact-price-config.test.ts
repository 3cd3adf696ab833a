import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { discoverOriginSchema, getWarningsForL2 } from '@agentcash/discovery';
import fc from 'fast-check';
import { errorsOf, warningsOf } from '../support/config.ts';
import { serviceFor } from '../support/service.ts';
import { RECIPIENT } from '../support/x402.ts';
import { askedFor } from '../support/x402-exact.ts';

const USDC = { network: 'eip155:8453', asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' };
const OTHER = { network: 'eip155:1', asset: `0x${'11'.repeat(20)}` };
const days = { name: 'days', required: true };

function selling(amount: unknown, parameters: readonly object[] = [days], token = USDC, more: object = {}) {
  const accept = { ...token, amount, payTo: RECIPIENT, extra: { name: 'USD Coin', version: '2' } };
  const auth = { type: 'x402-exact', facilitator: 'https://facilitator.example', accepts: [accept], ...more };
  return { apis: [{ name: 'a', url: 'https://up.example', endpoints: [{ name: 'e', path: '/', auth, parameters }] }] };
}
const AT = 'apis[0].endpoints[0].auth.accepts[0].amount';
const per = (rules: object, more: object = {}) => ({ base: '10', per: rules, max: '100', ...more });

describe('x402-exact: prices by parameter in the config', () => {
  const wrong: [string, object, string][] = [
    [
      'a misspelt parameter',
      selling(per({ dayz: '1' })),
      `${AT}.per.dayz: the endpoint a/e has no parameter "dayz", did you mean "days"?`,
    ],
    [
      'an unknown one',
      selling(per({ tier: '1' })),
      `${AT}.per.tier: the endpoint a/e has no parameter "tier", parameters: days`,
    ],
    [
      'none at all',
      selling(per({ tier: '1' }), []),
      `${AT}.per.tier: the endpoint a/e has no parameter "tier", there are no parameters here`,
    ],
    [
      'a fixed one',
      selling(per({ days: '1' }), [{ name: 'days', fixed: 3 }]),
      `${AT}.per.days: is fixed, and so the same in every request: add it to the base`,
    ],
    [
      'a secret one',
      selling(per({ days: '1' }), [{ name: 'days', default: 3, secret: true }]),
      `${AT}.per.days: is secret: its price would tell what it is`,
    ],
    [
      'two of a name',
      selling(per({ days: '1' }), [days, { ...days, in: 'header' }]),
      `${AT}.per.days: is declared twice: nobody could tell which one counts`,
    ],
    [
      'a default without a price',
      selling(per({ days: '1' }), [{ name: 'days', default: 'x' }]),
      `${AT}.per.days: has no price for "x", which the parameter may be: it must be a whole number, 0 or more`,
    ],
    [
      'a choice without a price',
      selling(per({ tier: { values: { a: '0' } } }), [
        { name: 'tier', required: true, schema: { type: 'string', enum: ['a', 'b'] } },
      ]),
      `${AT}.per.tier: has no price for "b", which the parameter may be: it must be one of "a"`,
    ],
    ['a maximum below the base', selling(per({ days: '1' }, { max: '9' })), `${AT}.max: is less than the base`],
    [
      'a maximum that no token has',
      selling(per({ days: '1' }, { max: String(2n ** 256n) })),
      `${AT}.max: is more than any token can hold (a uint256)`,
    ],
    ['no maximum', selling({ base: '1', per: { days: '1' } }), `${AT}.max: required key is missing`],
    ['no base', selling({ max: '1', per: { days: '1' } }), `${AT}.base: required key is missing`],
    [
      'a stated price',
      selling(per({ days: '1' }), [days], OTHER, { price: '0.01 USD' }),
      'apis[0].endpoints[0].auth.price: is of a fixed amount, and the amount depends on parameters: leave it out',
    ],
  ];
  for (const [what, config, line] of wrong)
    it(`is refused: ${what}`, async () => assert.deepEqual(await errorsOf({ ...config }), [line]));

  it('is refused: values without their key, which is named', async () => {
    assert.deepEqual(await errorsOf({ ...selling(per({ days: { pro: '5' } })) }), [
      `${AT}.per.days.values: required key is missing`,
      `${AT}.per.days.pro: unknown key, known keys: values`,
    ]);
    assert.deepEqual(await errorsOf({ ...selling(per({ days: { eech: '5' } })) }), [
      `${AT}.per.days.each: required key is missing`,
      `${AT}.per.days.eech: unknown key, did you mean "each"?`,
    ]);
    assert.deepEqual(await errorsOf({ ...selling(per({ days: { values: {} } })) }), [
      `${AT}.per.days.values: must not be empty`,
    ]);
  });

  it('is refused: an amount in dollars, with what is expected', async () => {
    for (const amount of ['0.01', '-1', '0'])
      assert.deepEqual(await errorsOf({ ...selling(amount) }), [
        `${AT}: has the wrong form, expected: A whole number in quotes, of the smallest unit of the token: 10000 is 0.01 USDC (pattern ^[1-9][0-9]{0,77}$)`,
      ]);
  });

  it('is refused: an amount that does not say of which form it is, with both', async () => {
    for (const amount of [{}, { max: '10' }])
      assert.deepEqual(await errorsOf(selling(amount)), [
        `${AT}: required keys are missing, expected {base, per, max} or {by, max}`,
      ]);
  });

  it('is refused: amounts that are no integers, and rules of another shape', async () => {
    for (const amount of [
      per({ days: '0.5' }),
      per({ days: '-1' }),
      per({ days: { every: '1' } }),
      per({}),
      per({ days: { values: { a: 'x' } } }),
    ]) {
      const [line = ''] = await errorsOf({ ...selling(amount) });
      assert.ok(line.startsWith(`${AT}.per`), line);
    }
  });

  it('a parameter that may be left out, and adds nothing then, is warned of', async () => {
    const warning = `${AT}.per.days: may be left out and adds nothing then: give the parameter a default or required`;
    assert.deepEqual(await warningsOf({ ...selling(per({ days: '1' }), [{ name: 'days' }]) }), [warning]);
    assert.deepEqual(await warningsOf({ ...selling(per({ days: '1' }), [{ name: 'days', default: 1 }]) }), []);
  });

  it('items that are counted of a number, which is one always, are warned of', async () => {
    const counted = (schema: object) => warningsOf({ ...selling(per({ days: { each: '1' } }), [{ ...days, schema }]) });
    const warning = `${AT}.per.days: counts one item always, since the parameter is neither a list nor a text: for so much times a number leave out "each"`;
    assert.deepEqual(await counted({ type: 'integer' }), [warning]);
    assert.deepEqual(await counted({ type: ['integer', 'array'] }), []);
    assert.deepEqual(await counted({ pattern: '^[0-9]+$' }), []);
  });

  it('catalogues are told the range', async (t) => {
    const { apis } = selling(per({ days: '10' }, { base: '10000', max: '2500000' }));
    const other = selling(per({ days: '10' }), [days], OTHER);
    const endpoints = [...(apis[0]?.endpoints ?? []), { ...other.apis[0]?.endpoints[0], name: 'other', path: '/o' }];
    const settings = { openapi: { title: 'Prices' }, mcp: true };
    const service = await serviceFor(t, { settings, apis: [{ ...apis[0], endpoints }] });
    const found = await discoverOriginSchema({ target: service.url });
    assert.ok(found.found);
    const sold = found.endpoints.filter(({ authMode }) => authMode === 'paid');
    assert.deepEqual(sold.map(({ price }) => price).sort(), ['0.01-2.5 USD', undefined]);
    const warnings = getWarningsForL2({ routes: sold, source: 'openapi' });
    assert.deepEqual(
      warnings.map(({ code, path }) => [code, path]),
      [['L2_DYNAMIC_PRICE_INCOMPLETE', `/endpoints/${service.ids['a/other']}`]],
    );
    const text = await (await fetch(`${service.url}/llms.txt`)).text();
    assert.match(text, /\[a\/e\].* Access: 0\.01 to 2\.5 USD by x402\. Parameters: days \(required\)\.\n/);
    assert.match(text, /\[a\/other\].* Access: paid by x402\./);
    const page = JSON.parse(await (await fetch(`${service.url}/openapi.json`)).text());
    const { price } = page.paths[`/endpoints/${service.ids['a/e']}`].post['x-payment-info'];
    assert.deepEqual(price, { mode: 'dynamic', currency: 'USD', min: '0.01', max: '2.5' });
  });

  it('the price is what arithmetic says, to the last digit, or the request is refused', async (t) => {
    const rules = { days: '3000000000000000000001', symbols: { each: '7' }, tier: { values: { a: '0', b: '10' } } };
    const max = 10n ** 76n;
    const amount = { base: '5', per: rules, max: String(max) };
    const names = ['days', 'symbols', 'tier'].map((name) => ({ name, default: name === 'tier' ? 'a' : 1 }));
    const service = await serviceFor(t, selling(amount, names));
    const whole = fc.oneof(fc.nat().map(String), fc.bigInt(0n, 10n ** 60n).map(String), fc.nat());
    const odd = fc.oneof(
      fc.double(),
      fc.string(),
      fc.bigInt(-(10n ** 9n), -1n).map(String),
      fc.boolean(),
      fc.constant(2 ** 53),
    );
    const list = fc.array(
      fc.string({ maxLength: 3 }).map((item) => item.replaceAll(',', ' ')),
      { minLength: 1, maxLength: 9 },
    );
    const isWhole = (value: unknown) =>
      typeof value === 'number' ? Number.isSafeInteger(value) && value >= 0 : /^[0-9]{1,78}$/.test(String(value));
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(whole, odd),
        list,
        fc.constantFrom('a', 'b', 'c', '__proto__'),
        async (number, items, tier) => {
          const asked = { days: number, symbols: items.join(','), tier };
          const response = await service.post('a/e', asked);
          const expected = isWhole(number)
            ? 5n + 3000000000000000000001n * BigInt(number) + 7n * BigInt(items.length) + (tier === 'b' ? 10n : 0n)
            : undefined;
          const isSold = expected !== undefined && expected <= max && /^[ab]$/.test(tier);
          assert.equal(response.status, isSold ? 402 : 400, JSON.stringify(asked));
          if (isSold) assert.equal((await askedFor(response)).accepts[0].amount, String(expected));
        },
      ),
      { numRuns: 300 },
    );
  });
});
