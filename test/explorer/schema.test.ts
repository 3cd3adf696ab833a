/** What the explorer says of the schema of a parameter. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { boundsOf, isLiteral, takesLists } from '../../builtins/explorer/client/schema.ts';

describe('a schema in plain words', () => {
  const rows: readonly (readonly [schema: Parameters<typeof boundsOf>[0], words: readonly string[]])[] = [
    [{}, []],
    [{ title: 'Days', description: 'Of a week' }, []],
    [{ type: 'integer', minimum: 1, maximum: 30 }, ['Must be a whole number, at least 1, at most 30.']],
    [{ maximum: 30, exclusiveMinimum: 0, type: 'number' }, ['Must be a number, more than 0, at most 30.']],
    [{ type: ['string', 'null'], maxLength: 8 }, ['Must be a text or null, with 8 or fewer characters.']],
    [{ enum: ['usd', 7, null] }, ['Must be one of usd, 7, null.']],
    [{ const: true }, ['Must be exactly true.']],
    [{ type: 'string', pattern: '^[A-Z]+$' }, ['Must be a text, matching the pattern ^[A-Z]+$.']],
    [{ type: 'integer', multipleOf: 5 }, ['Must be a whole number, a multiple of 5.']],
    [
      { type: 'array', items: { type: 'string' }, minItems: 1 },
      ['Must be a list, with 1 or more items.', 'Must fit this JSON Schema: {"items":{"type":"string"}}'],
    ],
    [{ constructor: 1 }, ['Must fit this JSON Schema: {"constructor":1}']],
  ];
  for (const [schema, words] of rows)
    it(`${JSON.stringify(schema)}: ${words.join(' ')}`, () => assert.deepEqual(boundsOf(schema), words));
});

describe('what is typed for a schema', () => {
  const list = { type: 'array', items: { type: 'string' } };
  const none = { type: 'null' };

  it('is JSON where lists are taken, and no text', () => {
    const inner = [{ anyOf: [list, none] }, { oneOf: [list] }, { allOf: [list] }];
    for (const schema of [list, { type: ['array', 'null'] }, ...inner])
      assert.ok(takesLists(schema), JSON.stringify(schema));
    for (const schema of [{}, { type: 'string' }, { anyOf: [list, { type: 'string' }] }, { type: 'integer' }])
      assert.ok(!takesLists(schema), JSON.stringify(schema));
  });

  it('stands for itself where it is a number or a boolean, and no text is taken', () => {
    const inner = { allOf: [{ anyOf: [{ type: 'integer' }, none] }, { minimum: 1 }] };
    for (const schema of [{ type: 'integer' }, { anyOf: [{ type: ['integer', 'boolean'] }, none] }, inner])
      for (const text of ['12345678901234567890', 'true']) assert.ok(isLiteral(schema, text), JSON.stringify(schema));
    for (const schema of [{}, { type: 'string' }, { oneOf: [{ type: 'integer' }, { type: 'string' }] }])
      assert.ok(!isLiteral(schema, '7'), JSON.stringify(schema));
    assert.ok(!isLiteral({ type: 'integer' }, 'seven'));
  });
});
