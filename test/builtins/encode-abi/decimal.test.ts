/** Decimal texts are scaled without a lost digit. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parse } from 'yaml';
import { PlanError, parseTimes } from '../../../builtins/encode-abi/lists.ts';
import {
  compareDecimals,
  type Decimal,
  decimalOf,
  isFraction,
  isWhole,
  parseDecimal,
  scaleToInteger,
} from '../../../builtins/shared/decimal.ts';

/** Numbers have their sign, digits and exponent, results of scaling their digits. */
interface Cases {
  readonly reads: readonly (readonly [text: string, number: readonly [string, string, number]])[];
  readonly refuses: readonly string[];
  readonly scales: readonly (readonly [value: string, times: string | null, result: string | null])[];
  readonly times: readonly (readonly [text: string, message: string])[];
}

const CASES: Cases = parse(readFileSync(new URL('cases/decimals.yaml', import.meta.url), 'utf8'));
const ZERO: Decimal = { negative: false, digits: '', exponent: 0 };

function decimal(text: string): Decimal {
  const parsed = parseDecimal(text);
  assert.ok(parsed, text);
  return parsed;
}

const compare = (a: string, b: string) => Math.sign(compareDecimals(decimal(a), decimal(b)));

function scaled(value: string, times?: string): bigint | undefined {
  return scaleToInteger(decimal(value), times === undefined ? undefined : parseTimes(times));
}

describe('decimal text', () => {
  for (const [text, [sign, digits, exponent]] of CASES.reads)
    it(`reads ${text}`, () => assert.deepEqual(parseDecimal(text), { negative: sign === '-', digits, exponent }));

  for (const text of CASES.refuses)
    it(`refuses ${JSON.stringify(text)}`, () => assert.equal(parseDecimal(text), undefined));

  it('refuses more than 4096 characters', () => assert.equal(parseDecimal(`1${'0'.repeat(4096)}`), undefined));

  it('compares numbers, not texts', () => {
    assert.equal(compare('1.0', '10e-1'), 0);
    assert.equal(compare('-0.0', '0'), 0);
    assert.equal(compare('1', '1.00000000000000000001'), -1);
    assert.equal(compare('1', '-1'), 1);
    assert.equal(compare('1', '10'), -1);
  });

  it('takes integers', () => {
    assert.deepEqual(decimalOf(-1200n), decimal('-1200'));
    assert.deepEqual(decimalOf(0n), ZERO);
  });
});

describe('scaling', () => {
  for (const [value, times, expected] of CASES.scales)
    it(`${value} times ${times ?? 'nothing'}`, () => {
      assert.equal(scaled(value, times ?? undefined)?.toString(), expected ?? undefined);
    });

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
    assert.equal(scaled(`1${'0'.repeat(4000)}e-4000`), 1n);
    assert.equal(scaled(`0.${'0'.repeat(3999)}1e4000`), 1n);
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
        const factor = times === undefined ? undefined : decimal(text(times));
        assert.equal(scaleToInteger(decimal(text(value)), factor), expected);
        const rest = times === undefined ? lifted(value) % unit : (lifted(value) * lifted(times)) % (unit * unit);
        assert.equal(isWhole(decimal(text(value)), factor), rest === 0n);
        const [a, b] = [lifted(value), lifted(times ?? value)];
        assert.equal(compare(text(value), text(times ?? value)), Number(a > b) - Number(a < b));
        assert.equal(isFraction(decimal(text(value))), a !== 0n && a > -unit && a < unit);
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

  for (const [text, message] of CASES.times)
    it(`refuses ${JSON.stringify(text)}`, () => assert.throws(() => parseTimes(text), new PlanError('times', message)));
});
