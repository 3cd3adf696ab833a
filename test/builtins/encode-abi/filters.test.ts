/** Filters of operators that are accepted match what they are true of. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parse } from 'yaml';
import { compilePath, PathError } from '../../../builtins/shared/json-path/index.ts';

interface Cases {
  readonly candidate: object;
  readonly statements: readonly string[];
  readonly accepted: readonly string[];
  readonly refused: readonly (readonly [path: string, message: string])[];
}

const { candidate, statements, accepted, refused }: Cases = parse(
  readFileSync(new URL('cases/filters.yaml', import.meta.url), 'utf8'),
);

const atom = fc.constantFrom(...statements);
const statement = fc.oneof(
  { weight: 3, arbitrary: atom },
  fc.tuple(atom, fc.constantFrom('&&', '||', ' && ', ' || ', ' and ', ','), atom).map((parts) => parts.join('')),
  atom.map((text) => `(${text})`),
  atom.map((text) => `!(!(${text}))`),
  fc.tuple(atom, atom).map(([a, b]) => `(${a}) && (${b})`),
);
const filter = fc
  .tuple(
    statement,
    fc.constantFrom<(text: string) => string>(
      ...[(text: string) => `[?(${text})]`, (text: string) => `[?(${text})]`, (text: string) => `[?( ${text} )]`],
      ...[(text: string) => `[? (${text})]`, (text: string) => `[ ?(${text})]`, (text: string) => `[?(${text}) ]`],
      ...[(text: string) => `[?${text}]`, (text: string) => `[?!(!(${text}))]`, (text: string) => `?(${text})`],
      ...[(text: string) => `.?(${text})`, (text: string) => `.(${text})`, (text: string) => `[?(${text});]`],
      ...[(text: string) => `[?(${text})`, (text: string) => `?(${text})]`, (text: string) => `[(?(${text}))]`],
    ),
  )
  .map(([text, wrap]) => wrap(text));

/** The path ready to run, or why it is refused. */
function compiled(path: string) {
  try {
    return compilePath(path, 'operator');
  } catch (error) {
    assert.ok(error instanceof PathError, String(error));
    return error.message;
  }
}

describe('filters of operators', () => {
  it('those that are accepted match what they are true of: none fails for its syntax', () => {
    let count = 0;
    fc.assert(
      fc.property(filter, fc.constantFrom('', '.n', '.list', "['id']"), (text, behind) => {
        const path = compiled(`$${text}${behind}`);
        if (typeof path === 'string') return assert.ok(path.length > 10 && path.length < 400, path);
        count++;
        assert.notEqual(path.first([candidate]), undefined, path.text);
      }),
      { numRuns: 20_000 },
    );
    assert.ok(count > 800, `only ${count} of 20000 were accepted`);
  });

  for (const path of accepted) {
    it(`${path} finds its value`, () => assert.equal(compilePath(path, 'operator').first([candidate])?.value, 3));
  }

  it('mean what they mean in JavaScript', () => {
    const values = [
      { v: 0 },
      { v: 1, a: null },
      { v: 2, a: 0 },
      { v: 3, a: '' },
      { v: 4, a: '1' },
      { v: 5, a: 1 },
      { v: 6, a: '9' },
    ];
    const rows: [string, number[]][] = [
      ['@.a', [4, 5, 6]],
      ['!@.a', [0, 1, 2, 3]],
      ['@.a===undefined', [0]],
      ["@.a=='1'", [4, 5]],
      ["@.a==='1'", [4]],
      ["@.a>'10'", [6]],
      ['@.a.b==1', []],
    ];
    for (const [text, taken] of rows) {
      const path = compilePath(`$[?(${text})].v`, 'operator');
      const alone = values.filter((value) => path.first([value]) !== undefined);
      const found = alone.map(({ v }) => v);
      assert.deepEqual(found, taken, text);
    }
  });

  it('a name in quotes may hold anything', () => {
    for (const [path, name] of [
      ["$['a(b)'][?(@.c)].d", 'a(b)'],
      ['$.a#1[?(@.c)].d', 'a#1'],
    ] as const)
      assert.equal(compilePath(path, 'operator').first({ [name]: [{ c: 1, d: 2 }] })?.value, 2);
  });

  for (const [path, message] of refused) {
    it(`${path} is refused`, () => assert.throws(() => compilePath(path, 'operator'), { name: 'PathError', message }));
  }

  it('every cure that is named is one', () => {
    for (const [path, message] of refused) {
      const [, cure] = /: write (\[.*\])$/.exec(message) ?? [];
      if (cure !== undefined)
        compilePath(
          path.replace(/\[.*\]/, () => cure),
          'operator',
        );
    }
  });
});
