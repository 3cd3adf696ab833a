/** JSON means what JSON.parse and RFC 8785 say, however long. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { canonicalJson } from '../../../lib/json/canonical-json.ts';
import { JsonLimitError, readJson } from '../../../lib/json/json-text.ts';

const LONG = 10_000;

const many = (member: (i: number) => string) => Array.from({ length: LONG / 4 }, (_, i) => member(i)).join(',');

const canonical = (text: string) => canonicalJson(readJson(text));

function outcome(text: string): unknown {
  try {
    const value = readJson(text);
    return { value, canonical: canonicalJson(value) };
  } catch (error) {
    if (error instanceof JsonLimitError) return 'JsonLimitError';
    return error instanceof SyntaxError ? 'SyntaxError' : error;
  }
}

function expected(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return 'SyntaxError';
  }
  try {
    return { value, canonical: canonicalJson(value) };
  } catch {
    // A number that is infinite, which a digit more or a point less can make of it.
    return 'JsonLimitError';
  }
}

function assertSame(text: string): void {
  assert.deepEqual(outcome(text), expected(text));
}

/** JSON texts that are long, with white space anywhere. */
const longText = fc
  .tuple(
    fc.array(fc.jsonValue({ maxDepth: 4 }), { minLength: 1, maxLength: 12 }),
    fc.constantFrom('', ' ', '\n', ' \t\r\n', ' '.repeat(2000)),
    fc.constantFrom('["x"]', '{"a":1}', '"long"', '12345', '[[],{}]'),
    fc.integer({ min: 1, max: 1000 }),
    fc.boolean(),
  )
  .map(([values, space, filler, repetitions, inObject]) => {
    const long = `[${space}${Array(repetitions)
      .fill(filler)
      .join(`${space.slice(0, 2)},`)}${space}]`;
    const members = values.flatMap((value) => [JSON.stringify(value), long]);
    if (!inObject) return `${space}[${members.join(`,${space.slice(0, 3)}`)}]${space}`;
    return `{${members.map((member, i) => `"k${i % 3}"${space} :${space}${member}`).join(`${space},`)}}`;
  });

describe('readJson', () => {
  it('makes of documents what JSON.parse and canonicalJson make of them', () => {
    const documents = [
      `[${many(String)}]`,
      `{${many((i) => `"${i.toString(36)}":${i}`)}}`,
      `{${many((i) => `"k${i % 7}":[${i}]`)}}`,
      `{${many((i) => `"${(i * 7919) % 100_003}":"${i}"`)}}`,
      `[[${many(() => '[]')}],{"a":[${many(() => '{}')}],"b":2},3]`,
      ` {"a" : [${many(() => ' "x,]}" ')}] , "b":{"c":[${many(() => '"\\\\"')}]}} `,
      `[${' '.repeat(LONG)}]`,
      `{${' '.repeat(LONG)}}`,
      `["${'a,'.repeat(LONG)}",{"${'k'.repeat(LONG)}":[${many(() => 'null')}]}]`,
      `${'['.repeat(200)}${many(() => '1e3')}${']'.repeat(200)}`,
      `[${many(() => '"\\u005d\\ud800"')}]`,
      '[]',
      ' null ',
      `"${'x'.repeat(LONG)}"`,
      '1'.repeat(300),
    ];
    for (const document of documents) assertSame(document);
  });

  it('agrees with JSON.parse on any long text, whole or damaged', () => {
    const damage = fc.tuple(
      fc.nat(),
      fc.constantFrom('', ',', '"', '[', ']', '{', '}', ':', ' ', '\\', '1', 'x'),
      fc.boolean(),
    );
    fc.assert(
      fc.property(longText, fc.option(damage), (text, change) => {
        if (change === null) return assertSame(text);
        const [position, character, replaces] = change;
        const at = position % (text.length + 1);
        return assertSame(text.slice(0, at) + character + text.slice(at + (replaces ? 1 : 0)));
      }),
      { numRuns: 100 },
    );
  });

  it('has no numbers beyond doubles and no more than 256 levels', () => {
    const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
    readJson(nested(256));
    assert.throws(() => readJson(nested(257)), new JsonLimitError('nested deeper than 256 levels'));
    for (const number of [
      '1e308',
      '-1.7976931348623157e308',
      '1e0000000300',
      `1${'0'.repeat(308)}`,
      '1e-999',
      `${'1'.repeat(210)}e99`,
      `${'9'.repeat(300)}e-99`,
    ]) {
      assert.deepEqual(readJson(`[${number}]`), [Number(number)]);
    }
    for (const number of [
      '1e309',
      '-1e400',
      '1E+0309',
      `1${'0'.repeat(309)}`,
      `1${'0'.repeat(310)}.5e-1`,
      `${'9'.repeat(210)}e99`,
    ]) {
      assert.throws(
        () => readJson(`[${number}]`),
        new JsonLimitError('a number is too large for standard JSON'),
        number,
      );
    }
  });
});

describe('the canonical form of JSON text', () => {
  it('writes any number as JavaScript does', () => {
    const digits = fc.stringMatching(/^\d{1,20}$/).map((text) => text.replace(/^0+(?=\d)/, ''));
    const number = fc
      .tuple(
        fc.constantFrom('', '-'),
        digits,
        fc.stringMatching(/^(?:\.\d{1,20})?$/),
        fc.stringMatching(/^(?:[eE][+-]?\d{1,2})?$/),
      )
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(number, (text) => assert.equal(canonical(text), JSON.stringify(JSON.parse(text)))),
      { numRuns: 1000 },
    );
  });

  it('is that of the value, whatever the keys', () => {
    const unit = fc.constantFrom(
      'a',
      'b',
      'é',
      '\ue000',
      '😀',
      '\\ud800',
      '\\udfff',
      '\\n',
      '\\"',
      '\\u0000',
      '\\u0061',
      '\\\\',
      '!',
      ' ',
    );
    const key = fc.array(unit, { maxLength: 12 }).map((units) => `"${units.join('')}"`);
    const member = fc.tuple(
      key,
      fc.constantFrom('1', '{"b":[],"a":{}}', '[ "x" , null ]', '"\\u00e9"', '-0', 'true', 'false'),
    );
    const object = fc
      .array(member, { maxLength: 60 })
      .map((members) => `{${members.map(([k, v]) => `${k} : ${v}`).join(' ,')}}`);
    fc.assert(fc.property(object, assertSame), { numRuns: 500 });
  });

  it('puts many keys in order, with common beginnings and duplicates', () => {
    for (const prefix of ['', 'k', 'x'.repeat(99), '😀', '\\n', '\\ud83d']) {
      assertSame(`{${many((i) => `"${prefix}${(i * 7919) % 1009}":${i}`)}}`);
    }
    assertSame(`{${many((i) => `"k${i % 3}":${i}`)}}`);
    assertSame(`{"b":{"b":{"b":0,"a":1},"a":2},"a":[${many((i) => `{"b":${i},"a":0}`)}]}`);
  });

  it('is that of the value where objects are alike, have the names of what is inherited, or differ', () => {
    const members = [
      '"b":[{"d":1,"c":-0}],"a":"\\ud800\\n"',
      '"10":1,"9":{"2":"x","1":[]}',
      '"toJSON":1,"length":2',
      '"constructor":{"valueOf":null}',
      '"__proto__":{"a":{"b":1}}',
      `${'"d":{"c":'.repeat(20)}1${'}'.repeat(20)}`,
    ];
    const numbered = (i: number) => `"n${i}":1`;
    for (const other of [...members, numbered(0)]) {
      assertSame(`[{"b":2,"a":1},{${other}},${many((i) => `{"z":${i},"b":null${i % 3 ? `,${other}` : ''}}`)}]`);
    }
    assertSame(`{"y":[${many((i) => `{"b":${i},${numbered(i)},"a":[{"d":1,"c":"é"}]}`)}],"x":1}`);
    assertSame(`[${many((i) => `[{"b":${i},"a":1}],{"b":${i},"a":1}`)}]`);
  });

  it('outgrows its text', () => {
    assert.equal(canonical(`[${many(() => '1e20')}]`), `[${many(() => '100000000000000000000')}]`);
  });
});
