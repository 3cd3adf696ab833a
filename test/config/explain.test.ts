/** Whatever is wrong with a value is told in words, and never with the value. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type TSchema, Type } from 'typebox';
import { Check } from 'typebox/value';
import { findingLine } from '../../config/findings.ts';
import { configKey } from '../../plugins-sdk/config-key.ts';
import { explain } from '../../plugins-sdk/schema/explain.ts';

const cases: readonly [TSchema, unknown, ...string[]][] = [
  [Type.Number({ exclusiveMinimum: 0 }), 0, 'v: must be more than 0'],
  [Type.Number({ exclusiveMaximum: 2 }), 2, 'v: must be less than 2'],
  [Type.Number({ minimum: 3, multipleOf: 2 }), 1, 'v: must be at least 3', 'v: must be a multiple of 2'],
  [Type.String({ minLength: 3 }), 'ab', 'v: must have at least 3 characters'],
  [Type.String({ maxLength: 1 }), '🙂🙂', 'v: must have at most 1 characters'],
  [Type.String({ format: 'ipv4' }), 'x', 'v: has the wrong form (format ipv4)'],
  [
    Type.String({ pattern: '^a', description: 'a word with a' }),
    'b',
    'v: has the wrong form, expected: a word with a (pattern ^a)',
  ],
  [Type.Array(Type.String(), { minItems: 2 }), ['a'], 'v: must have at least 2 entries'],
  [
    Type.Array(Type.String(), { maxItems: 1 }),
    ['a', 1, 1, 1, 1, 1, 1, 1, 1],
    'v: must have at most 1 entries',
    ...[1, 2, 3, 4, 5, 6, 7, 8].map((at) => `v[${at}]: expected a string, found a number, write it in quotes`),
  ],
  [Type.Object({}, { maxProperties: 1 }), { a: 1, b: 2 }, 'v: must have at most 1 keys'],
  [Type.Tuple([Type.String(), Type.Integer()]), ['a', 'b'], 'v[1]: expected an integer, found a string'],
  [
    Type.Record(Type.String(), Type.Integer()),
    { a: 'x', 'b c': 1.5 },
    'v.a: expected an integer, found a string',
    'v["b c"]: expected an integer, found a number',
  ],
  [
    Type.Intersect([Type.Object({ a: Type.String() }), Type.Object({ b: Type.String() })]),
    { a: 1 },
    'v.a: expected a string, found a number, write it in quotes',
    'v.b: required key is missing',
  ],
  [Type.Null(), 1, 'v: expected null, found a number'],
  [Type.Literal(3), 4, 'v: expected 3'],
  [Type.Literal('x'), 4, 'v: expected "x", found a number'],
  [Type.Enum(['a', 'b']), [], 'v: expected "a" or "b", found a list'],
  [Type.Union([Type.String(), Type.Boolean()]), null, 'v: expected a string or true or false, found nothing'],
  [Type.Union([Type.Integer({ minimum: 1 }), Type.Boolean()]), 0, 'v: must be at least 1'],
  [
    Type.Union([Type.Object({ a: Type.Integer() }), Type.Object({ b: Type.Integer(), c: Type.Integer() })]),
    { a: 'x' },
    'v.a: expected an integer, found a string',
  ],
  [
    Type.Union([Type.Literal('none'), Type.Union([Type.Literal('some'), Type.Literal('all')])]),
    'al',
    'v: expected one of "none", "some", "all", did you mean "all"?',
  ],
  [Type.Object({}, { additionalProperties: false }), { a: 1 }, 'v.a: unknown key, there are no known keys here'],
  [{ type: ['string', 'integer'] }, true, 'v: expected a string or an integer, found a boolean, write it in quotes'],
  [
    { type: 'object', properties: { a: true }, additionalProperties: { type: 'integer' } },
    { a: 'x', b: 'x' },
    'v.b: expected an integer, found a string',
  ],
  [
    { oneOf: [{ type: 'integer' }, { type: 'number' }] },
    1,
    'v: is not allowed: it must match exactly one schema in oneOf',
  ],
  [{ not: {} }, 1, 'v: is not allowed: it must not be valid'],
  [
    Type.Refine(
      Type.Object({ a: Type.Integer() }),
      ({ a }) => a > 1,
      () => 'a must be more than 1',
    ),
    { a: 1 },
    'v: a must be more than 1',
  ],
];

test('every way of being wrong has its words', () => {
  for (const [schema, value, ...lines] of cases)
    assert.deepEqual(explain(schema, value, 'v').map(findingLine), lines, JSON.stringify(schema));
});

test('property: there is something to explain exactly when TypeBox refuses', () => {
  const schemas = cases.map(([schema]) => schema);
  const value = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom(...cases.map(([, wrong]) => wrong)));
  fc.assert(
    fc.property(fc.constantFrom(...schemas), value, (schema, any) => {
      assert.equal(explain(schema, any, '').length === 0, Check(schema, any));
    }),
  );
});

test('a schema that cannot be compiled is no obstacle as long as nobody comes to what is wrong with it', () => {
  const unsound = Type.Object({
    a: Type.Optional(Type.Integer()),
    b: Type.Optional(Type.String({ pattern: '(' })),
  });
  const key = configKey('endpoint', 'unsound', Type.Optional(unsound));
  for (let count = 0; count < 120; count++)
    assert.deepEqual(key.of({ block: { unsound: { a: count } }, apiBlock: {} }), { a: count });
});
