/** Equal JSON has one canonical text, as other libraries make it. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runInNewContext } from 'node:vm';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { CanonicalJsonError, canonicalJson, jcs, MAX_JSON_DEPTH } from '../../lib/json/canonical-json.ts';
import { isDeeperThan } from '../../lib/json/json-text.ts';
import { anyCharacter } from '../support/any-character.ts';

const BOTH = [canonicalJson, jcs];

// RFC 8785, appendix B: the bits of the number and its text.
const RFC_NUMBERS: [string, string][] = [
  ['0000000000000000', '0'],
  ['8000000000000000', '0'],
  ['0000000000000001', '5e-324'],
  ['8000000000000001', '-5e-324'],
  ['7fefffffffffffff', '1.7976931348623157e+308'],
  ['ffefffffffffffff', '-1.7976931348623157e+308'],
  ['4340000000000000', '9007199254740992'],
  ['c340000000000000', '-9007199254740992'],
  ['4430000000000000', '295147905179352830000'],
  ['44b52d02c7e14af5', '9.999999999999997e+22'],
  ['44b52d02c7e14af6', '1e+23'],
  ['44b52d02c7e14af7', '1.0000000000000001e+23'],
  ['444b1ae4d6e2ef4e', '999999999999999700000'],
  ['444b1ae4d6e2ef4f', '999999999999999900000'],
  ['444b1ae4d6e2ef50', '1e+21'],
  ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
  ['3eb0c6f7a0b5ed8d', '0.000001'],
  ['41b3de4355555553', '333333333.3333332'],
  ['41b3de4355555554', '333333333.33333325'],
  ['41b3de4355555555', '333333333.3333333'],
  ['41b3de4355555556', '333333333.3333334'],
  ['41b3de4355555557', '333333333.33333343'],
  ['becbf647612f3696', '-0.0000033333333333333333'],
  ['43143ff3c1cb0959', '1424953923781206.2'],
];

const numberOf = (bits: string): number => Buffer.from(bits, 'hex').readDoubleBE();

const wellFormed = fc.string({ unit: anyCharacter, maxLength: 12 });
const anyUtf16 = fc.array(fc.nat(0xffff), { maxLength: 8 }).map((codes) => String.fromCharCode(...codes));

/** JSON values whose strings, keys included, are of the given kind. */
function jsonWith(strings: fc.Arbitrary<string>): fc.Arbitrary<unknown> {
  const keys = fc.oneof(strings, fc.constantFrom('a', 'b', '1', '10', '9', 'toString', 'é'));
  const number = fc.double({ noNaN: true, noDefaultInfinity: true });
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 5, depthSize: 'small' },
      fc.constantFrom(null, true, false, -0, 1e21, 1e-7),
      number,
      strings,
      fc.array(tie('tree'), { maxLength: 5 }),
      fc.dictionary(keys, tie('tree'), { maxKeys: 6 }),
    ),
  }));
  return tree;
}

function refuses(act: () => unknown, message: string): void {
  assert.throws(act, (error) => {
    assert.ok(error instanceof CanonicalJsonError, String(error));
    assert.deepEqual([error.name, error.message], ['CanonicalJsonError', message]);
    return true;
  });
}

function nested(depth: number, wrap: (inner: unknown) => unknown): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = wrap(value);
  return value;
}

for (const write of BOTH) {
  describe(`${write.name} by RFC 8785`, () => {
    it('section 3.2.2 to 3.2.4: the sample and its bytes', () => {
      const sample = String.raw`{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
      }`;
      const bytes = `
        7b 22 6c 69 74 65 72 61 6c 73 22 3a 5b 6e 75 6c 6c 2c 74 72
        75 65 2c 66 61 6c 73 65 5d 2c 22 6e 75 6d 62 65 72 73 22 3a
        5b 33 33 33 33 33 33 33 33 33 2e 33 33 33 33 33 33 33 2c 31
        65 2b 33 30 2c 34 2e 35 2c 30 2e 30 30 32 2c 31 65 2d 32 37
        5d 2c 22 73 74 72 69 6e 67 22 3a 22 e2 82 ac 24 5c 75 30 30
        30 66 5c 6e 41 27 42 5c 22 5c 5c 5c 5c 5c 22 2f 22 7d`;
      assert.equal(Buffer.from(write(JSON.parse(sample))).toString('hex'), bytes.replaceAll(/\s/g, ''));
    });

    it('section 3.2.3: keys in the order of their UTF-16 code units', () => {
      const sample = String.raw`{
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\ud83d\ude00": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis"
      }`;
      assert.equal(
        write(JSON.parse(sample)),
        '{"\\r":"Carriage Return","1":"One","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis",' +
          '"\u20ac":"Euro Sign","\u{1f600}":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
      );
    });

    it('appendix B: numbers', () => {
      for (const [bits, text] of RFC_NUMBERS) assert.equal(write(numberOf(bits)), text, bits);
    });

    it('section 3.2.2.2: every control character, the quote and the backslash, and nothing else, is escaped', () => {
      const controls = String.fromCharCode(...Array.from({ length: 32 }, (_, code) => code));
      assert.equal(
        write(`${controls}"\\/\u007f\u0080\u2028\u2029\ufeff\uffff`),
        '"\\u0000\\u0001\\u0002\\u0003\\u0004\\u0005\\u0006\\u0007\\b\\t\\n\\u000b\\f\\r\\u000e\\u000f' +
          '\\u0010\\u0011\\u0012\\u0013\\u0014\\u0015\\u0016\\u0017\\u0018\\u0019\\u001a\\u001b\\u001c\\u001d\\u001e\\u001f' +
          '\\"\\\\/\u007f\u0080\u2028\u2029\ufeff\uffff"',
      );
    });

    it('escapes each code unit exactly when JSON.stringify does', () => {
      for (let code = 0; code <= 0xffff; code++) {
        const text = String.fromCharCode(code);
        if (code < 0xd800 || code > 0xdfff) assert.equal(write(text), JSON.stringify(text));
      }
    });

    it('agrees with an independent implementation on any JSON', () => {
      fc.assert(
        fc.property(jsonWith(wellFormed), (value) => {
          assert.equal(write(value), canonicalize(value));
        }),
        { numRuns: 500 },
      );
    });
  });

  describe(`${write.name} of any JSON value`, () => {
    it('sorts few keys and many keys alike', () => {
      for (const count of [1, 2, 31, 32, 33, 34, 1000]) {
        const keys = Array.from({ length: count }, (_, i) => `k${(i * 7919) % 1009}`);
        const expected = keys.toSorted().map((key) => `"${key}":0`);
        assert.equal(write(Object.fromEntries(keys.map((key) => [key, 0]))), `{${expected.join(',')}}`);
      }
    });

    it('writes an own key named __proto__ like any other', () => {
      assert.equal(write(JSON.parse('{"b":1,"__proto__":{"a":2}}')), '{"__proto__":{"a":2},"b":1}');
      assert.equal(
        write(JSON.parse('{"toJSON":1,"constructor":2,"hasOwnProperty":3}')),
        '{"constructor":2,"hasOwnProperty":3,"toJSON":1}',
      );
    });

    it('writes objects without a prototype and of another realm, and no inherited key', () => {
      assert.equal(write(Object.assign(Object.create(null), { b: 1, a: 2 })), '{"a":2,"b":1}');
      assert.equal(write(runInNewContext('({ b: [1, {}], a: null })')), '{"a":null,"b":[1,{}]}');
      assert.equal(write(Object.assign(Object.create({ __proto__: null, inherited: 1 }), { own: 2 })), '{"own":2}');
    });

    it('writes one object in two places twice', () => {
      const shared = { a: [1] };
      assert.equal(write({ x: shared, y: [shared, shared] }), '{"x":{"a":[1]},"y":[{"a":[1]},{"a":[1]}]}');
    });

    it('does not change what it is given', () => {
      const value = Object.freeze({ b: Object.freeze([3, 1]), a: 1 });
      write(value);
      assert.deepEqual(Object.keys(value), ['b', 'a']);
    });
  });

  describe(`${write.name} refuses`, () => {
    it('numbers that are not finite', () => {
      refuses(() => write(Number.NaN), 'NaN cannot be written as JSON');
      refuses(() => write({ a: [Number.POSITIVE_INFINITY] }), 'Infinity cannot be written as JSON');
      refuses(() => write(Number.NEGATIVE_INFINITY), '-Infinity cannot be written as JSON');
    });

    it('what JSON has no type for', () => {
      refuses(() => write(1n), 'a value of type bigint cannot be written as JSON');
      refuses(() => write([() => 1]), 'a value of type function cannot be written as JSON');
      refuses(() => write({ a: Symbol('s') }), 'a value of type symbol cannot be written as JSON');
      refuses(() => write({ toJSON: () => 1 }), 'a value of type function cannot be written as JSON');
    });

    it('objects that are neither plain nor arrays', () => {
      const message = 'an object that is neither plain nor an array cannot be written as JSON';
      class Point {
        x = 1;
      }
      const objects = [
        new Date(0),
        new Map(),
        new Set(),
        Buffer.from('a'),
        new Point(),
        Object('a'),
        /a/,
        new Error('a'),
      ];
      for (const value of objects) {
        refuses(() => write(value), message);
        refuses(() => write({ a: [value] }), message);
      }
    });

    const tooDeep = `the value contains itself or is nested deeper than ${MAX_JSON_DEPTH} levels`;

    it('deep nesting, one level too many or very many, without overflowing the stack', () => {
      for (const wrap of [(inner: unknown) => [inner], (inner: unknown) => ({ a: inner })]) {
        const [open, close] = Array.isArray(wrap(0)) ? ['[', ']'] : ['{"a":', '}'];
        assert.equal(write(nested(256, wrap)), `${open.repeat(256)}1${close.repeat(256)}`);
        for (const depth of [257, 100_000]) refuses(() => write(nested(depth, wrap)), tooDeep);
      }
    });

    it('a value that contains itself', () => {
      const array: unknown[] = [];
      array.push(array, array);
      const object: Record<string, unknown> = {};
      object.a = { b: [object] };
      refuses(() => write(array), tooDeep);
      refuses(() => write(object), tooDeep);
    });
  });
}

describe('what only canonicalJson lets through', () => {
  it('undefined, as null', () => {
    assert.equal(canonicalJson(undefined), 'null');
    assert.equal(canonicalJson({ b: undefined, a: [undefined, 1] }), '{"a":[null,1],"b":null}');
    const sparse: unknown[] = [];
    sparse[2] = 1;
    assert.equal(canonicalJson(sparse), '[null,null,1]');
    for (const value of [undefined, [undefined], { a: undefined }, sparse])
      refuses(() => jcs(value), 'a value of type undefined cannot be written as JSON');
  });

  it('lone surrogates, escaped', () => {
    assert.equal(canonicalJson('\ud800'), String.raw`"\ud800"`);
    assert.equal(canonicalJson({ '\udfffa': '\ude00\ud83d' }), String.raw`{"\udfffa":"\ude00\ud83d"}`);
    const message = 'a string with a lone surrogate has no canonical JSON (RFC 8785)';
    for (const value of ['\ud800', 'a\udfff', '\ude00\ud83d', { '\ud800': 1 }, [{ a: '\u{1f600}\ud83d' }]])
      refuses(() => jcs(value), message);
  });

  it('agrees with JSON.stringify on any string, and jcs wherever it is well formed', () => {
    fc.assert(
      fc.property(anyUtf16, (text) => {
        assert.equal(canonicalJson(text), JSON.stringify(text));
        assert.equal(canonicalJson({ [text]: text }), JSON.stringify({ [text]: text }));
        // Encoding to UTF-8 replaces lone surrogates, and only those.
        if (Buffer.from(text).toString() === text) assert.equal(jcs(text), JSON.stringify(text));
        else refuses(() => jcs(text), 'a string with a lone surrogate has no canonical JSON (RFC 8785)');
      }),
      { numRuns: 500 },
    );
  });

  it('agrees with an independent implementation on JSON with any strings', () => {
    fc.assert(fc.property(jsonWith(anyUtf16), (value) => canonicalJson(value) === canonicalize(value)));
  });
});

describe('isDeeperThan', () => {
  const depthOf = (value: unknown): number =>
    typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0;

  it('ends on text that is cut off', () => {
    for (const text of ['"', '"\\', '["a', '["a\\', ']]]', '{"a":"\\"'])
      assert.equal(isDeeperThan(text, 1), false, text);
  });

  it('draws the same line as the writers', () => {
    const text = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
    assert.equal(isDeeperThan(text(MAX_JSON_DEPTH), MAX_JSON_DEPTH), false);
    assert.equal(isDeeperThan(text(MAX_JSON_DEPTH + 1), MAX_JSON_DEPTH), true);
    assert.equal(canonicalJson(JSON.parse(text(MAX_JSON_DEPTH))), text(MAX_JSON_DEPTH));
    refuses(
      () => canonicalJson(JSON.parse(text(MAX_JSON_DEPTH + 1))),
      'the value contains itself or is nested deeper than 256 levels',
    );
  });

  it('agrees with the depth of any value, with and without white space', () => {
    const strings = fc.string({ unit: fc.constantFrom('[', ']', '{', '}', '"', '\\', 'a', '\ud800'), maxLength: 8 });
    fc.assert(
      fc.property(jsonWith(strings), fc.nat(6), fc.constantFrom(0, 2), (value, limit, indent) => {
        assert.equal(isDeeperThan(JSON.stringify(value, null, indent), limit), depthOf(value) > limit);
      }),
      { numRuns: 500 },
    );
  });
});
