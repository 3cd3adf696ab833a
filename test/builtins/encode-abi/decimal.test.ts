/** Decimal texts are scaled without a lost digit. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  type Decimal,
  decimalOf,
  equalDecimals,
  isFraction,
  isWhole,
  parseDecimal,
  parseTimes,
  scaleToInteger,
} from '../../../builtins/encode-abi/decimal.ts';
import { PlanError } from '../../../builtins/encode-abi/fault.ts';

const ZERO: Decimal = { negative: false, digits: '', exponent: 0 };

function decimal(text: string): Decimal {
  const parsed = parseDecimal(text);
  assert.ok(parsed, text);
  return parsed;
}

function scaled(value: string, times?: string): bigint | undefined {
  return scaleToInteger(decimal(value), times === undefined ? undefined : parseTimes(times));
}

describe('decimal text', () => {
  const same: [string, Decimal][] = [
    ['-12.5e-7', { negative: true, digits: '125', exponent: -8 }],
    ['+0012.500', { negative: false, digits: '125', exponent: -1 }],
    ['1200', { negative: false, digits: '12', exponent: 2 }],
    ['1E+3', { negative: false, digits: '1', exponent: 3 }],
    ['.5', { negative: false, digits: '5', exponent: -1 }],
    ['5.', { negative: false, digits: '5', exponent: 0 }],
    ['0', ZERO],
    ['-0', ZERO],
    ['-0.000e99', ZERO],
    ['0e1000000000', ZERO],
  ];
  for (const [text, expected] of same) {
    it(`reads ${text}`, () => assert.deepEqual(parseDecimal(text), expected));
  }

  for (const text of [
    ...[
      '',
      ' 1',
      '1 ',
      '1\n',
      '.',
      '+',
      '-',
      'e5',
      '.e5',
      '1e',
      '1e+',
      '1.2.3',
      '1,000',
      '1_000',
      '--1',
      '0x10',
      'Infinity',
    ],
    ...['NaN', '١٢', '1e1.5', '1n', `1${'0'.repeat(4096)}`],
  ]) {
    it(`refuses ${JSON.stringify(text.slice(0, 20))}`, () => assert.equal(parseDecimal(text), undefined));
  }

  it('compares numbers, not texts', () => {
    assert.equal(equalDecimals(decimal('1.0'), decimal('10e-1')), true);
    assert.equal(equalDecimals(decimal('-0.0'), decimal('0')), true);
    assert.equal(equalDecimals(decimal('1'), decimal('1.00000000000000000001')), false);
    assert.equal(equalDecimals(decimal('1'), decimal('-1')), false);
    assert.equal(equalDecimals(decimal('1'), decimal('10')), false);
  });

  it('takes integers', () => {
    assert.deepEqual(decimalOf(-1200n), decimal('-1200'));
    assert.deepEqual(decimalOf(0n), ZERO);
  });
});

describe('scaling', () => {
  const rows: [string, string | undefined, bigint | undefined][] = [
    ['12345678901234567891', undefined, 12345678901234567891n],
    ['0.1234567890123456789', '1e19', 1234567890123456789n],
    ['0.1234567890123456789', '1e18', 123456789012345678n],
    ['1e-7', '1e18', 100000000000n],
    ['-0', undefined, 0n],
    ['-0', '1e18', 0n],
    ['1.9', undefined, 1n],
    ['-1.9', undefined, -1n],
    ['-0.9', undefined, 0n],
    ['0.99999999999999999999', undefined, 0n],
    ['1234567', '1e-6', 1n],
    ['-1999999', '1e-6', -1n],
    ['1', '1e77', 10n ** 77n],
    ['10', '1e77', undefined],
    ['9.99', '1e77', 999n * 10n ** 75n],
    ['99.9', '1e77', undefined],
    ['9.5', '9.5', 90n],
    ['2', '-0.5', -1n],
    ['-2', '-0.5', 1n],
    ['5', '0', 0n],
    ['9'.repeat(78), undefined, 10n ** 78n - 1n],
    ['9'.repeat(79), undefined, undefined],
    [`1${'0'.repeat(4000)}e-4000`, undefined, 1n],
    [`0.${'0'.repeat(3999)}1e4000`, undefined, 1n],
  ];
  for (const [value, times, expected] of rows) {
    const shown = value.length > 30 ? `${value.slice(0, 10)}… (${value.length} characters)` : value;
    it(`${shown} times ${times ?? 'nothing'}`, () => assert.equal(scaled(value, times), expected));
  }

  it('decides on huge exponents without computing the power', () => {
    assert.equal(scaled('1e1000000000'), undefined);
    assert.equal(scaled('-1e1000000000', '1e-77'), undefined);
    assert.equal(scaled(`1e${'9'.repeat(4000)}`), undefined);
    assert.equal(scaled('1e-999999999999'), 0n);
    assert.equal(scaled('1e-999999999999', '1e77'), 0n);
    assert.equal(scaled(`-1e-${'9'.repeat(4000)}`, '1e77'), 0n);
    assert.equal(scaled('9'.repeat(4096)), undefined);
    assert.equal(scaled(`0.${'9'.repeat(4094)}`), 0n);
    assert.equal(scaled('0e1000000000', '1e77'), 0n);
  });

  it('equals the same computation on whole integers', () => {
    const digits = fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: 60 });
    const number = fc.record({
      sign: fc.constantFrom('', '-', '+'),
      whole: digits,
      fraction: fc.option(digits, { nil: '' }),
      exponent: fc.integer({ min: -90, max: 90 }),
    });
    const text = (n: { sign: string; whole: string; fraction: string; exponent: number }) =>
      `${n.sign}${n.whole}${n.fraction === '' ? '' : `.${n.fraction}`}e${n.exponent}`;
    const LIFT = 1000;
    /** The number times 10^1000, as an integer. */
    const lifted = (n: { sign: string; whole: string; fraction: string; exponent: number }) =>
      BigInt(n.whole + n.fraction) * 10n ** BigInt(LIFT + n.exponent - n.fraction.length) * (n.sign === '-' ? -1n : 1n);

    fc.assert(
      fc.property(number, fc.option(number, { nil: undefined }), (value, times) => {
        const unit = 10n ** BigInt(LIFT);
        const product = times === undefined ? lifted(value) / unit : (lifted(value) * lifted(times)) / (unit * unit);
        const expected = product > -(10n ** 78n) && product < 10n ** 78n ? product : undefined;
        const actual = scaleToInteger(decimal(text(value)), times === undefined ? undefined : decimal(text(times)));
        assert.equal(actual, expected);
        const rest = times === undefined ? lifted(value) % unit : (lifted(value) * lifted(times)) % (unit * unit);
        const factor = times === undefined ? undefined : decimal(text(times));
        assert.equal(isWhole(decimal(text(value)), factor), rest === 0n);
        const size = lifted(value) < 0n ? -lifted(value) : lifted(value);
        assert.equal(isFraction(decimal(text(value))), size > 0n && size < unit);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('times', () => {
  it('takes decimal numbers up to 1e77 and down to 1e-77', () => {
    assert.deepEqual(parseTimes('1e18'), { negative: false, digits: '1', exponent: 18 });
    assert.deepEqual(parseTimes('1000'), { negative: false, digits: '1', exponent: 3 });
    assert.deepEqual(parseTimes('1e-6'), { negative: false, digits: '1', exponent: -6 });
    assert.deepEqual(parseTimes('-2.5'), { negative: true, digits: '25', exponent: -1 });
    assert.deepEqual(parseTimes('1e77'), { negative: false, digits: '1', exponent: 77 });
    assert.deepEqual(parseTimes(`1${'0'.repeat(77)}`), { negative: false, digits: '1', exponent: 77 });
    assert.deepEqual(parseTimes('10e-78'), { negative: false, digits: '1', exponent: -77 });
    assert.deepEqual(parseTimes('9.9e76'), { negative: false, digits: '99', exponent: 75 });
    assert.deepEqual(parseTimes('0e9999'), ZERO);
  });

  const wrong: [string, string][] = [
    ['', 'times is not a decimal number such as 100, 0.5 or 1e18'],
    ['1e18x', 'times is not a decimal number such as 100, 0.5 or 1e18'],
    ['0x10', 'times is not a decimal number such as 100, 0.5 or 1e18'],
    [' 1', 'times is not a decimal number such as 100, 0.5 or 1e18'],
    ['Infinity', 'times is not a decimal number such as 100, 0.5 or 1e18'],
    ['1e78', 'times is larger than 1e77'],
    ['-1e78', 'times is larger than 1e77'],
    ['1.1e77', 'times is larger than 1e77'],
    ['1e1000000000', 'times is larger than 1e77'],
    [`1${'0'.repeat(78)}`, 'times is larger than 1e77'],
    ['1e-78', 'times is finer than 1e-77'],
    ['1.5e-77', 'times is finer than 1e-77'],
    ['1e-1000000000', 'times is finer than 1e-77'],
    ['0'.repeat(101), 'times is longer than 100 characters'],
  ];
  for (const [text, message] of wrong) {
    it(`refuses ${JSON.stringify(text.slice(0, 20))}`, () => {
      assert.throws(() => parseTimes(text), new PlanError('times', message));
    });
  }
});
