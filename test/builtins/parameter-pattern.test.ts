/** Patterns of parameters match what regular expressions of JavaScript match, in bounded time. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { LinearPattern } from '../../builtins/shared/linear-pattern.ts';

const matches = (source: string, text: string, left = 1e6) => new LinearPattern(source).test(text, { left });

/** Patterns of all that is supported, over a small alphabet, so that texts match often. */
const { pattern } = fc.letrec<{ pattern: string; atom: string; part: string }>((tie) => ({
  atom: fc.oneof(
    { maxDepth: 2, depthIdentifier: 'pattern' },
    fc.constantFrom(
      'a',
      'b',
      'c',
      '.',
      '[ab]',
      '[^a]',
      '\\d',
      '\\w',
      '\\x61',
      '\\u0062',
      '\\u{1f600}',
      '^',
      '$',
      '\\.',
      'é',
    ),
    tie('pattern').map((inner) => `(${inner})`),
    tie('pattern').map((inner) => `(?:${inner})`),
  ),
  part: fc
    .tuple(tie('atom'), fc.constantFrom('', '', '', '*', '+', '?', '*?', '{2}', '{0}', '{1,}', '{0,2}', '{1,2}?'))
    .map(([atom, quantifier]) => (atom === '^' || atom === '$' ? atom : atom + quantifier)),
  pattern: fc
    .array(
      fc.array(tie('part'), { maxLength: 3 }).map((parts) => parts.join('')),
      { minLength: 1, maxLength: 3 },
    )
    .map((branches) => branches.join('|')),
}));
const texts = fc.string({
  unit: fc.constantFrom('a', 'b', 'c', '1', '.', 'é', '\u{1f600}', '\ud83d', '\ude00', '\n'),
  maxLength: 6,
});

describe('patterns of parameters', () => {
  it('match what regular expressions of JavaScript match', () => {
    fc.assert(
      fc.property(pattern, texts, (source, text) => {
        assert.equal(matches(source, text), new RegExp(source, 'u').test(text));
      }),
      { numRuns: 1000 },
    );
  });

  it('among them those that operators write', () => {
    const cases: [string, string[], string[]][] = [
      ['^[A-Z]{2,10}(,[A-Z]{2,10})*$', ['BTC', 'BTC,ETH,SOL'], ['', 'btc', 'BTC,', 'B', 'BTC,,ETH']],
      ['^0x[0-9a-fA-F]{40}$', [`0x${'aB'.repeat(20)}`], [`0x${'a'.repeat(39)}`, `0x${'a'.repeat(41)}`]],
      ['^\\d{4}-\\d{2}-\\d{2}$', ['2030-12-31'], ['2030-1-1', '2030-12-31 ']],
      ['^(?<name>[a-z]+)(?:-[a-z]+)?$', ['a', 'a-b'], ['-', 'a-', 'A']],
      ['^\\p{L}+$', ['Zürich', '東京'], ['a1', '']],
      ['b', ['abc'], ['ac']],
      ['', ['', 'x'], []],
    ];
    for (const [source, yes, no] of cases) {
      for (const text of yes) assert.ok(matches(source, text), `${source} ${text}`);
      for (const text of no) assert.ok(!matches(source, text), `${source} ${text}`);
    }
  });

  it('take work in proportion to the text where a regular expression takes twice as much for each letter', () => {
    for (const source of ['^(a+)+$', '^(a|a)*$', '^(a|aa)+$', '^(.*)*x$', '^(a*)*(b*)*$', '(a?){50}a{50}$']) {
      const work = { left: 1e7 };
      new LinearPattern(source).test(`${'a'.repeat(2000)}!`, work);
      assert.ok(1e7 - work.left < 2001 * 300, `${source}: ${1e7 - work.left}`);
    }
  });

  it('do not match where there is no work left', () => {
    assert.equal(matches('^a*$', 'a'.repeat(1000), 100_000), true);
    assert.equal(matches('^a*$', 'a'.repeat(1000), 1000), false);
    assert.equal(matches('', '', 0), false);
  });

  it('that would have to go back, or are too large, are refused', () => {
    const refused: [string, RegExp][] = [
      ['(a)\\1', /^has \\1, which is not supported$/],
      ['(?<x>a)\\k<x>', /^has \\k, which is not supported$/],
      ['\\bword\\b', /^has \\b, which is not supported$/],
      ['^(?!a)', /^has a look-around or a modifier, which are not supported$/],
      ['(?<=a)b', /^has a look-around/],
      ['a{2001}', /^has more than 2000 steps, repetitions written out$/],
      ['((a{100}){100}){100}', /^has more than 2000 steps/],
      ['(', /^Invalid regular expression/],
      ['a{,2}', /^Invalid regular expression/],
    ];
    for (const [source, message] of refused)
      assert.throws(() => new LinearPattern(source), { name: 'SyntaxError', message });
    assert.ok(matches('^(?:){1000000000}$', ''));
  });
});
