/** A parameter in a path is a literal, whatever it holds. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { operatorPaths } from '../../../builtins/shared/json-path/operator-paths.ts';
import { anyCharacter } from '../../support/any-character.ts';

type Values = Readonly<Record<string, string | number | boolean | null>>;

/** The value at a path, as one that is parsed once and filled for each request finds it. */
function finder(path: string, names: readonly string[]) {
  const [compiled] = operatorPaths(path, names);
  assert.ok(compiled);
  return (document: unknown, values: Values) => compiled.first(document, undefined, values)?.value;
}

const AWKWARD = [
  ...["'", '"', '\\', "\\'", "it's", '"]', "']['b", '*', '..', '$', '@', '@.id', '^', '~', '`', '`a', '', ' ', '\n'],
  ...['a.b', 'a,b', '[0]', '0', '-1', '1:2', ':', '?(@)', '(@.length-1)', '?(@.id)', '@number()', "'||true||'", '/a/'],
  ...['{a}', '{{a}}', '{b}', '__proto__', 'constructor', 'toString', 'length', 'hasOwnProperty', '_$_v', 'null'],
  ...['😀', '\ud83d', '\ude00', '\ud800', '\udc00', '\udc01', '\udc00\udc01', 'x'.repeat(1000)],
];
const text = fc.oneof(fc.constantFrom(...AWKWARD), fc.string({ unit: anyCharacter, maxLength: 8 }));
const texts = fc.uniqueArray(text, { minLength: 2, maxLength: 12 });

/** A document with these names, each of which leads to its own place in the list. */
function named(names: readonly string[]): object {
  return Object.fromEntries(names.map((name, index) => [name, index]));
}

describe('templates in paths', () => {
  it('as a name, find what a plain look-up finds', () => {
    const paths = ['$.{a}', "$['{a}']", '$["{a}"]', '$[{a}]', '{a}', "$['nothing',{a}]", '$..{a}'];
    const finders = paths.map((path) => finder(path, ['a']));
    fc.assert(
      fc.property(texts, text, (names, other) => {
        const document = named(names);
        for (const a of [...names, other]) {
          const expected = Object.hasOwn(document, a) ? Reflect.get(document, a) : undefined;
          for (const [index, find] of finders.entries()) assert.equal(find(document, { a }), expected, paths[index]);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('as a part of a name, find what the whole name finds', () => {
    const finders = [finder("$.rates['{a}-{b}'].rate", ['a', 'b']), finder('$.rates.{a}-{b}.rate', ['a', 'b'])];
    fc.assert(
      fc.property(texts, text, text, (names, a, b) => {
        const rates = Object.fromEntries([...names, `${a}-${b}`].map((name) => [name, { rate: name }]));
        for (const find of finders) assert.equal(find({ rates }, { a, b }), `${a}-${b}`);
        for (const find of finders) assert.equal(find({ rates: {} }, { a, b }), undefined);
      }),
      { numRuns: 300 },
    );
  });

  it('as a literal of a filter, take the entry that is equal to it', () => {
    const paths = [
      '$.list[?(@.id == {a})].v',
      "$.list[?(@.id === '{a}')].v",
      '$.list[?({a} == @.id)].v',
      '$..[?(@.id=={a})].v',
      '$.list[?(@.pair == "<{a}>{b}\'")].v',
      '$.list[?(@.id == {a} && @.other == {b})].v',
      '$.list[?([{a}].includes(@.id))].v',
    ];
    const finders = paths.map((path) => finder(path, ['a', 'b']));
    fc.assert(
      fc.property(texts, text, text, (ids, other, b) => {
        const list = ids.map((id, v) => ({ id, v, pair: `<${id}>${b}'`, other: b }));
        for (const a of [...ids, other]) {
          const expected = list.find(({ id }) => id === a)?.v;
          for (const [index, find] of finders.entries()) assert.equal(find({ list }, { a, b }), expected, paths[index]);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('as the name of an entry, compare `@property`', () => {
    const find = finder('$.rates[?(@property == {a})].v', ['a']);
    fc.assert(
      fc.property(texts, (names) => {
        const rates = Object.fromEntries(names.map((name, v) => [name, { v }]));
        for (const [v, a] of names.entries()) assert.equal(find({ rates }, { a }), v);
      }),
      { numRuns: 100 },
    );
  });

  it('keep the type of a value, which in a name counts as its JSON', () => {
    const list = [{ n: '5' }, { n: 5 }, { n: true }, { n: null }].map((one, v) => ({ ...one, v }));
    const strict = finder('$[?(@.n === {n})].v', ['n']);
    for (const [value, place] of [
      ['5', 0],
      [5, 1],
      [true, 2],
      [null, 3],
    ] as const)
      assert.equal(strict(list, { n: value }), place);
    const name = finder('$.{n}', ['n']);
    for (const [value, key] of [[5, '5'] as const, [true, 'true'] as const, [null, 'null'] as const])
      assert.equal(name({ [key]: 'x' }, { n: value }), 'x');
  });

  it('may have any name that holds no braces', () => {
    for (const name of ['ids[]', 'a.b', "it's", 'a,b', '$x', 'x y', '__proto__', '0', '(', '?']) {
      const values = Object.fromEntries([[name, 'k']]);
      for (const path of [`$.{${name}}.v`, `$['{${name}}'].v`, `$.{${name}}.v,$.nothing`])
        assert.equal(finder(path, [name])({ k: { v: 7 } }, values), 7, path);
      assert.equal(finder(`$[?(@.id == {${name}})].v`, [name])([{ id: 'k', v: 7 }], values), 7, name);
    }
  });

  it('are the text {name} in doubled braces', () => {
    for (const path of ['$.{{a}}', "$['{{a}}']", "$[?(@property == '{{a}}')]"])
      assert.equal(finder(path, ['a'])({ '{a}': 1, x: 2 }, { a: 'x' }), 1, path);
    assert.equal(finder("$['{{{a}}}']", ['a'])({ '{{a}}': 1 }, { a: 'x' }), 1);
    assert.equal(finder('$.{{a}}-{a}', ['a'])({ '{a}-x': 1 }, { a: 'x' }), 1);
  });

  it('are one value in a filter, and no part of a name', () => {
    const why =
      "a parameter is a value here, and no part of a name: write it alone or in quotes, as in [?(@.pair == '{a}-{b}')] or [?(@property == {id})]";
    for (const filter of ['@.{a} == 1', '@.x{a} == 1', '@.id == {a}{a}', '@.id == x{a}', "@['{a}'] == 1", '@[{a}]'])
      assert.throws(() => operatorPaths(`$[?(${filter})]`, ['a']), {
        name: 'PathError',
        message: `[?(${filter})]: ${why}`,
      });
    assert.throws(() => operatorPaths('$[?(@.list.join({a}) == 1)]', ['a']), {
      message: '[?(@.list.join({a}) == 1)]: a parameter between the members of a list could make a text of any length',
    });
  });

  it('ask for an entry by its name, so that no start warns of them', () => {
    const one = (path: string) => operatorPaths(path, ['a', 'b'])[0];
    for (const path of ['$.{a}.{b}', "$['{a}-{b}']", '$.{a}[-1:]']) assert.equal(one(path)?.definite, true, path);
    for (const path of [
      '$.q[?(@.base == {a} && @.quote == {b})].mid',
      "$.q[?(@.pair=='{a}{b}')]",
      '$.q[?(@.id==={a})]',
    ])
      assert.equal(one(path)?.onceByName, true, path);
    for (const path of ['$.q[?(@.base == {a} || @.quote == {b})].mid', '$..{a}', '$[?(@.n > {a})]'])
      assert.equal(one(path)?.onceByName, false, path);
  });

  it('are shown as they are written', () => {
    const texts = operatorPaths(" $.{a}.{{a}} , $[?(@.id == '{a}\\'')].v", ['a']).map(({ text }) => text);
    assert.deepEqual(texts, ['$.{a}.{{a}}', "$[?(@.id == '{a}\\'')].v"]);
    assert.throws(() => operatorPaths('$.{a}.b[', ['a']), {
      message: 'expected a name, an index or "*" at character 9',
    });
  });

  it('need a value', () => {
    assert.throws(() => finder('$.{a}', ['a'])({}, {}), {
      name: 'PathError',
      message: 'the request has no value for {a}',
    });
  });
});
