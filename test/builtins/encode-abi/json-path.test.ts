/** Paths find what jsonpath-plus finds, within a budget of steps. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { JSONPath } from 'jsonpath-plus';
import { parse } from 'yaml';
import {
  BudgetError,
  compilePath,
  fullBudget,
  type Match,
  PathError,
  splitList,
} from '../../../builtins/shared/json-path/index.ts';

type Found = readonly [path: string, value: unknown, location: readonly (string | number)[]];

interface Cases {
  readonly document: { readonly store: object };
  readonly finds: readonly Found[];
  readonly findsNothing: readonly string[];
  readonly refused: readonly (readonly [path: string, message: string])[];
  readonly forOperators: readonly string[];
  readonly lists: readonly (readonly [list: string, members: readonly string[]])[];
  readonly filters: readonly (Found | readonly [path: string, value: null, location: null])[];
}

const CASES: Cases = parse(readFileSync(new URL('cases/paths.yaml', import.meta.url), 'utf8'));
const STORE = CASES.document;

function first(path: string, document: unknown = STORE): Match | undefined {
  return compilePath(path, 'requester').first(document);
}

function operatorFirst(path: string, document: unknown = STORE): Match | undefined {
  return compilePath(path, 'operator').first(document);
}

describe('paths', () => {
  const whole: readonly Found[] = [
    ['$', STORE, []],
    ['$..*', STORE.store, ['store']],
  ];
  for (const [path, value, location] of [...CASES.finds, ...whole]) {
    it(path, () => {
      assert.deepEqual(first(path), { value, location });
      assert.deepEqual(operatorFirst(path), { value, location });
      assert.equal(compilePath(path, 'operator').text, path);
    });
  }

  for (const path of CASES.findsNothing) it(`${path} finds nothing`, () => assert.equal(first(path), undefined));

  it('finds null, false, 0 and empty values', () => {
    assert.deepEqual(first('$.a', { a: null }), { value: null, location: ['a'] });
    assert.deepEqual(first('$.*', [false]), { value: false, location: [0] });
    for (const root of [0, false, null, '', []]) assert.deepEqual(first('$', root), { value: root, location: [] });
    assert.equal(first('$.a', null), undefined);
    assert.equal(first('$.a', 'text'), undefined);
  });

  it('finds own members only', () => {
    for (const name of ['__proto__', 'constructor', 'toString', 'length', 'hasOwnProperty']) {
      for (const document of [{}, [1], 'text', 7, { a: 'text' }]) {
        assert.equal(first(`$.${name}`, document), undefined);
        assert.equal(first(`$..${name}`, document), undefined);
      }
    }
    const document: unknown = JSON.parse('{"__proto__":{"constructor":1},"length":2}');
    assert.deepEqual(first('$.__proto__.constructor', document), { value: 1, location: ['__proto__', 'constructor'] });
    assert.deepEqual(first('$.length', document), { value: 2, location: ['length'] });
    assert.equal(first('$[0]', 'text'), undefined);
    assert.equal(first('$[01]', [1, 2]), undefined);
    assert.equal(first('$[99999999999999999999]', [1, 2]), undefined);
  });

  it('leaves the parser of the library untouched', () => {
    const before = Object.keys(Object.prototype);
    compilePath('__proto__', 'requester');
    compilePath("$['__proto__'].x", 'requester');
    assert.deepEqual(Object.keys(Object.prototype), before);
    assert.equal(first('$.x', {}), undefined);
  });
});

describe('what is no path', () => {
  for (const [path, message] of CASES.refused) {
    it(JSON.stringify(path), () => {
      for (const origin of ['operator', 'requester'] as const)
        assert.throws(() => compilePath(path, origin), { name: 'PathError', message });
    });
  }

  it('a requester has 512 characters', () => {
    assert.equal(first(`$${'.a'.repeat(255)}`), undefined);
    assert.throws(() => first(`$.${'a'.repeat(511)}`), new PathError('the path is longer than 512 characters'));
    assert.equal(operatorFirst(`$.${'a'.repeat(5000)}`), undefined);
  });

  it('an error shows nothing of what a requester wrote', () => {
    const message = 'filters, scripts, type selectors, "^", "~" and "`" are not allowed';
    assert.throws(() => first('$[[my-secret-text))]'), new PathError(message));
  });

  for (const path of CASES.forOperators) {
    it(`a requester may not use ${path}`, () => {
      const message = 'filters, scripts, type selectors, "^", "~" and "`" are not allowed';
      assert.throws(() => compilePath(path, 'requester'), { name: 'PathError', message });
    });
  }

  it('a requester may quote what would be one of these', () => {
    assert.deepEqual(first("$['?(x)']['a^~`']", { '?(x)': { 'a^~`': 1 } }), { value: 1, location: ['?(x)', 'a^~`'] });
  });
});

describe("operators' filters", () => {
  for (const [path, value, location] of CASES.filters) {
    it(path, () => assert.deepEqual(operatorFirst(path), location === null ? undefined : { value, location }));
  }

  it('passes over candidates on which the filter fails', () => {
    const document = [null, 1, { a: null }, { a: { b: 2 }, c: 3 }];
    assert.deepEqual(operatorFirst('$[?(@.a.b==2)].c', document), { value: 3, location: [3, 'c'] });
    assert.deepEqual(operatorFirst('$..[(@.length-1)]', { a: [1, 2] }), { value: 2, location: ['a', 1] });
    assert.equal(operatorFirst('$[(@.b)]', { b: {} }), undefined);
  });

  it('does not take what a nested filter finds for a match', () => {
    const document = [{ a: [{ b: 1 }], c: 2 }];
    assert.deepEqual(operatorFirst('$[?(@.a[?(@.b)])].c', document), { value: 2, location: [0, 'c'] });
  });

  it('runs no script of its own making', () => {
    for (const script of [
      'process.exit(1)',
      'this.constructor.constructor("return 7")()',
      'globalThis',
      'require("fs")',
    ]) {
      assert.throws(() => operatorFirst(`$[?(${script})]`, [1, 2]), PathError);
    }
  });

  it('takes what a script makes of the document for a name, never for a selector', () => {
    for (const name of ['*', '..', '1:', '?(@)', "'b'", '$', '(@.a)', '^', '~', '@number()']) {
      assert.equal(operatorFirst('$[(@.name)]', { name, b: 1 }), undefined, name);
      assert.deepEqual(operatorFirst('$[(@.name)]', { name, [name]: 7 }), { value: 7, location: [name] });
    }
    assert.deepEqual(operatorFirst('$.list[(@.length-1)]', { list: [1, 2] }), { value: 2, location: ['list', 1] });
  });

  it('takes no name of the document for what the path says behind a wildcard', () => {
    const trades = [{ "'price'": 999, price: 10 }];
    for (const path of ['$[*].price', '$.*.price', "$[*]['price']", '$[?(@)].price', '$[0:1].price'])
      assert.deepEqual(operatorFirst(path, trades), { value: 10, location: [0, 'price'] }, path);
    assert.equal(operatorFirst('$[*].price', [{ "'price'": 999 }]), undefined);
    assert.equal(operatorFirst('$[*][0:1].b', [{ '0:1': { b: 1 } }]), undefined);
  });

  it('has no other extension of the library', () => {
    for (const path of ['$.a^', '$.a~', '$.`*', '$.*@number()', '$.a?(@.b)'])
      assert.throws(() => compilePath(path, 'operator'), PathError, path);
  });

  it('finds syntax errors at once', () => {
    for (const path of ['$[?(@.a ==)]', '$.a[?(@.b &&)].c', '$.a[?(@.b)', '$.a[?(@.b)]]'])
      assert.throws(() => compilePath(path, 'operator'), PathError, path);
  });

  it('finds nothing in a document that is no container', () => {
    for (const document of [null, 0, '', false, 1, 'text'])
      assert.equal(operatorFirst('$[?(@.a)]', document), undefined);
  });
});

describe('the step budget', () => {
  const wide = { list: Array.from({ length: 30_000 }, () => ({ a: 0 })) };
  const nested = (depth: number) => {
    let value: unknown = 7;
    for (let i = 0; i < depth; i++) value = { a: value };
    return value;
  };
  const message = 'the path takes too many steps on this document';

  it('ends what takes too long', () => {
    const deep = nested(250);
    for (const path of ['$..a..a..a..a..zz', '$..*..*..*..zz', `$${'[*,*]'.repeat(80)}.zz`, '$..[::1]..*..*..zz'])
      assert.throws(() => first(path, [deep, deep]), { name: 'BudgetError', message }, path);
    for (const name of ['a'.repeat(500), "\\'".repeat(250)])
      assert.throws(() => first(`$..['${name}']`, wide.list.slice(0, 6000)), { message });
    assert.throws(() => operatorFirst('$..[?(@.zz)]', wide), { name: 'BudgetError', message });
    assert.throws(() => operatorFirst('$..[?(@.a.b.c)]', wide), { name: 'BudgetError', message });
    assert.throws(() => operatorFirst('$..a..a..a[?(@.zz)]', deep), { name: 'BudgetError', message });
  });

  it('counts the members of objects and the scripts that fail for more', () => {
    const members = Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`k${i}`, i]));
    assert.equal(first('$[*].zz', Object.values(members)), undefined);
    assert.equal(first('$[*].zz', members), undefined);
    assert.throws(() => first('$[*]..zz', members), { name: 'BudgetError', message });
    const nothing = Array.from({ length: 1_500 }, () => null);
    assert.equal(operatorFirst('$[?(@==1)]', nothing), undefined);
    assert.throws(() => operatorFirst('$[?(@.a.b)]', nothing), { name: 'BudgetError', message });
  });

  it('is enough for large documents', () => {
    assert.equal(first('$.list[*].zz', wide), undefined);
    assert.deepEqual(first('$.list[29999].a', wide), { value: 0, location: ['list', 29999, 'a'] });
    const tickers = Array.from({ length: 3_000 }, (_, i) => ({ symbol: `S${i}`, price: i, a: 1, b: 2, c: 3, d: 4 }));
    assert.deepEqual(operatorFirst("$[?(@.symbol=='S2999')].price", tickers), {
      value: 2999,
      location: [2999, 'price'],
    });
    assert.deepEqual(first('$..zz', [tickers, { zz: 1 }]), { value: 1, location: [1, 'zz'] });
  });

  it('is shared by the paths that get the same one', () => {
    const budget = fullBudget();
    const path = compilePath('$.list[*].zz', 'requester');
    path.first(wide, budget);
    assert.throws(() => path.first(wide, budget), BudgetError);
    assert.equal(path.first(wide), undefined);
  });

  it('refuses documents that are nested too deep instead of using up the stack', () => {
    assert.equal(first('$..a', nested(500))?.location?.length, 1);
    assert.equal(first('$..zz', nested(500)), undefined);
    const tooDeep = { name: 'BudgetError', message: 'the document is nested too deep' };
    assert.throws(() => first('$..zz', nested(100_000)), tooDeep);
    const circular: Record<string, unknown> = {};
    circular.self = circular;
    assert.throws(() => first('$..zz', circular), tooDeep);
    assert.throws(() => operatorFirst('$..zz[?(@.a)]', circular), tooDeep);
    assert.throws(() => operatorFirst('$..zz[?(@.a)]', nested(100_000)), tooDeep);
  });
});

describe('against jsonpath-plus', () => {
  const NAMES = ['a', 'b', 'c', 'x y', '0', '1', '__proto__', 'd.e', 'f,g'];
  const scalar = fc.constantFrom('1', '2', 'null', 'true', 'false', '""', '0');
  const text = fc.letrec<{ value: string }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 5, depthSize: 'medium', withCrossShrink: true },
      scalar,
      fc.array(tie('value'), { maxLength: 4 }).map((items) => `[${items.join(',')}]`),
      fc
        .uniqueArray(fc.tuple(fc.constantFrom(...NAMES), tie('value')), { maxLength: 5, selector: ([name]) => name })
        .map((members) => `{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`),
    ),
  })).value;
  const container = text.filter((json) => json.startsWith('[') || json.startsWith('{'));

  const plain = fc.constantFrom('a', 'b', 'c', 'x y', '0', '1', '__proto__');
  const bound = fc.option(fc.integer({ min: -4, max: 4 }), { nil: '' });
  const slice = fc.tuple(bound, bound, fc.option(bound, { nil: undefined }));
  const segment = fc.oneof(
    plain.map((name) => `.${name}`),
    plain.map((name) => `..${name}`),
    fc.constantFrom('.*', '..*', '[*]', '..[*]', '..[0]', "['d.e']", "['f,g']", "..['a']", "..['a','b']", '[-1]'),
    fc.integer({ min: 0, max: 4 }).map((index) => `[${index}]`),
    slice.map(([start, end, step]) => `[${start}:${end}${step === undefined ? '' : `:${step}`}]`),
    fc.array(fc.constantFrom(...NAMES), { minLength: 2, maxLength: 3 }).map((all) => `[${all.map((n) => `'${n}'`)}]`),
    fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 2, maxLength: 3 }).map((all) => `[${all}]`),
  );
  const path = fc.array(segment, { minLength: 1, maxLength: 5 }).map((segments) => `$${segments.join('')}`);

  it('finds the same first value at the same place', () => {
    let matches = 0;
    fc.assert(
      fc.property(container, path, (json, expression) => {
        const document: unknown = JSON.parse(json);
        const found = JSONPath({ path: expression, json: document, eval: false, resultType: 'all', wrap: true });
        assert.ok(Array.isArray(found));
        const [expected] = found;
        const match = first(expression, document);
        assert.equal(match === undefined, expected === undefined);
        if (match === undefined) return;
        matches++;
        assert.equal(match.value, expected.value);
        assert.equal(JSONPath.toPathString(['$', ...(match.location ?? []).map(String)]), expected.path);
      }),
      { numRuns: 5000 },
    );
    assert.ok(matches > 250, `only ${matches} of 5000 found anything`);
  });
});

describe('lists', () => {
  for (const [list, members] of CASES.lists) {
    it(JSON.stringify(list), () => assert.deepEqual(splitList(list), members));
  }
});
