/** A number is read from the text of the answer, with each of its digits. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { exactDigits } from '../../../builtins/encode-abi/values.ts';
import { follow, type Location } from '../../../builtins/shared/json-path/index.ts';
import { keepsDigits } from '../../../lib/json/numbers.ts';

/** Of what `JSON.parse` finds at these places. */
function digitsAt(text: string, locations: readonly Location[]): readonly (string | undefined)[] {
  const matches = locations.map((location) => ({ value: undefined, ...follow(JSON.parse(text), location), location }));
  const digits = exactDigits(matches, text);
  return locations.map((_, i) => digits[i]);
}

/** A document as it is written: with its number tokens, its member names as literals, and all its duplicates. */
type Written =
  | { readonly kind: 'number' | 'other'; readonly token: string }
  | { readonly kind: 'array'; readonly items: readonly Written[] }
  | {
      readonly kind: 'object';
      readonly members: readonly (readonly [name: string, literal: string, value: Written])[];
    };

const SPECIAL = '"\\\b\f\n\r\t/';

/** One of the ways to write each character in a JSON string. */
function literalOf(name: string, escaped: readonly boolean[]): string {
  const characters = Array.from({ length: name.length }, (_, i) => {
    const character = name.charAt(i);
    const unicode = `\\u${name.charCodeAt(i).toString(16).padStart(4, '0')}`;
    if (!SPECIAL.includes(character)) return escaped[i] ? unicode : character;
    return escaped[i] ? unicode : character === '/' ? '\\/' : JSON.stringify(character).slice(1, -1);
  });
  return `"${characters.join('')}"`;
}

const member = fc
  .tuple(
    fc.constantFrom('a', 'b', 'aa', '', 'a"b', '\\', 'a\\', '\n', '/', 'é', '😀', '__proto__', '0', '}', '{"a":1}'),
    fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }),
  )
  .map(([name, escaped]): [string, string] => [name, literalOf(name, escaped)]);

const numberToken = fc.oneof(
  fc.stringMatching(/^-?(0|[1-9]\d{0,25})(\.\d{1,25})?([eE][+-]?\d{1,3})?$/),
  fc.constantFrom('12345678901234567891', '0.1234567890123456789', '1e400', '-0', '1E-7'),
);

const otherToken = fc.oneof(
  fc.constantFrom('true', 'false', 'null', '"a"', '"1"', '"]"', '"}"', '"\\""', '"\\\\"', '{}', '[]', '","', '":1"'),
  fc.string().map((text) => JSON.stringify(text)),
);

const written = fc.letrec<{ value: Written }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, depthSize: 'small', withCrossShrink: true },
    numberToken.map((token): Written => ({ kind: 'number', token })),
    otherToken.map((token): Written => ({ kind: 'other', token })),
    fc.array(tie('value'), { maxLength: 4 }).map((items): Written => ({ kind: 'array', items })),
    fc
      .array(fc.tuple(member, tie('value')), { maxLength: 5 })
      .map((all): Written => ({ kind: 'object', members: all.map(([[name, text], value]) => [name, text, value]) })),
  ),
})).value;

function print(document: Written, space: () => string): string {
  const around = (text: string) => `${space()}${text}${space()}`;
  if (document.kind === 'array')
    return around(`[${document.items.map((item) => print(item, space)).join(',') || space()}]`);
  if (document.kind === 'object') {
    const members = document.members.map(([, text, value]) => `${around(text)}:${print(value, space)}`);
    return around(`{${members.join(',') || space()}}`);
  }
  return around(document.token);
}

function locations(document: Written, here: Location = []): Location[] {
  if (document.kind === 'array') return [here, ...document.items.flatMap((item, i) => locations(item, [...here, i]))];
  if (document.kind === 'object') {
    return [here, ...document.members.flatMap(([name, , value]) => locations(value, [...here, name]))];
  }
  return [here];
}

function tokenAt(document: Written, location: Location): string | undefined {
  const [step, ...rest] = location;
  if (step === undefined) {
    const isRounded = document.kind === 'number' && !keepsDigits(document.token, Number(document.token));
    return isRounded ? document.token : undefined;
  }
  // Where a name is given twice, a path of the first may lead into the last, of another kind.
  if (document.kind === 'array') {
    const item = document.items.find((_, index) => String(index) === String(step));
    return item && tokenAt(item, rest);
  }
  if (document.kind === 'object') {
    const last = document.members.findLast(([name]) => name === String(step));
    return last && tokenAt(last[2], rest);
  }
  return undefined;
}

describe('the source text of a number', () => {
  it('is found in documents with any spaces, escapes and duplicates', () => {
    const spaces = fc.infiniteStream(fc.constantFrom('', '', '', ' ', '\n', '\t', '\r\n', '  '));
    fc.assert(
      fc.property(written, spaces, (document, stream) => {
        const text = print(document, () => stream.next().value ?? '');
        // Half of a surrogate pair can be escaped by itself, but no text in UTF-8 holds the other half.
        fc.pre(text.isWellFormed());
        JSON.parse(text);
        const all = [...locations(document), ['nowhere'], [99]];
        const expected = all.map((location) => tokenAt(document, location));
        assert.deepEqual(digitsAt(text, all), expected);
        for (const [i, location] of all.entries()) assert.deepEqual(digitsAt(text, [location]), [expected[i]]);
      }),
      { numRuns: 2000 },
    );
  });
});
