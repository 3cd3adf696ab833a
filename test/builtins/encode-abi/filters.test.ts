/** Filters of operators that are accepted match what they are true of. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { compilePath, PathError } from '../../../builtins/shared/json-path/index.ts';

/** Whoever reads them takes all of these for true of the candidate, in one language or another. */
const candidate = { id: 'ETH', n: 3, zero: 0, list: [1, 2, 'x'], sub: [{ t: 'x', u: [{ w: 1 }] }], 'a-b': true };
const statements = [
  ...["@.id=='ETH'", '@.id=="ETH"', "@['id']=='ETH'", "@.id === 'ETH'", "'ETH'==@.id", '@.id==ETH', "id=='ETH'"],
  ...["@.id='ETH'", "@.id <> 'X'", "@.id != 'X'", "@.id in ['ETH']", '@.id =~ /E.*/', "@.id.match('E')", '@.id'],
  ...[
    "match(@.id,'E.*')",
    "search(@.id,'T')",
    'length(@.id)==3',
    'count(@.list[*])==3',
    'value(@.n)==3',
    'exists(@.n)',
  ],
  ...["@.id.startsWith('E')", "@.id.contains('E')", "@.id.includes('(')==false", '@.id.length()==3', '@.id.length==3'],
  ...[
    "@.id.includes(')')==false",
    "@.id!='(x)'",
    "@.id!=')]'",
    "@.id!='a]'",
    "@.id!='['",
    "@.id!='@a(b)'",
    "@.id!='#1'",
  ],
  ...["@.id!='a;b'", "@.id!='^'", "@.id!='~'", "@.id!='it\\'s'", '@.id!="\'"', "@.id!='?('", "@.id!='..'", "@.id!='`'"],
  ...['@.n>2', '@.n > 2 ', '@.n>=3 && @.n<4', '@.n>2 and @.n<4', '@.n>2 or @.n<4', '@.n>2, @.n<4', '@.n>2;@.n<4'],
  ...['!@.zz', '!(@.zz)', 'not @.zz', 'not(@.zz)', '@.zz==null', '@.zz==nil', '@.zz===undefined', '@.n!=NaN', '-@.n<0'],
  ...['@.list.length==3', '@.list[0]==1', "@.list.includes('x')", '@.list.some(1)', '[3,4].includes(@.n)', '{3}==@.n'],
  ...[
    '@.sub[?(@.t)]',
    "@.sub[?(@.t=='x')]",
    '@.sub[?(@.u[?(@.w)])]',
    '@.sub[?(@.t)] && @.n==3',
    '@.n==3 && @.sub[?(@.t)]',
  ],
  ...['@.list[(@.length-1)]', "@.list[(@.length-1)]=='x'", '@.sub[?@.t]', '@.sub[? (@.t)]', '@.sub[0].t', "@['a-b']"],
  ...['@root[0].list', '$[0].list', '$[0].n==3', '@root[0].n==3', '@property==0', '@path', '@.n==$[0].n', '@.n'],
  ...[
    'typeof @.n=="number"',
    '@.n ? true : false',
    '@.n??true',
    '@.n?.x==null',
    'this.n',
    'true',
    '1==1',
    '1',
    '@',
    '@.*',
  ],
  ...['@.n++', 'new Date()', 'x => true', '`a`', '/E/', '@.n==3)', '(@.n==3', '@.n==', '== 3', '', '@.a b', '@foo==1'],
];

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
    let accepted = 0;
    fc.assert(
      fc.property(filter, fc.constantFrom('', '.n', '.list', "['id']"), (text, behind) => {
        const path = compiled(`$${text}${behind}`);
        if (typeof path === 'string') return assert.ok(path.length > 10 && path.length < 400, path);
        accepted++;
        assert.notEqual(path.first([candidate]), undefined, path.text);
      }),
      { numRuns: 20_000 },
    );
    assert.ok(accepted > 800, `only ${accepted} of 20000 were accepted`);
  });

  const accepted = [
    ...[
      "$[?(@.id=='ETH')].n",
      "$[?(@['id']=='ETH' && (@.n>2 || @.zz))].n",
      "$..[?(@.id=='ETH')].n",
      '$[?(@.list[0]==1)].n',
    ],
    ...[
      "$[?(@.id.startsWith('E'))].n",
      '$[?([3,4].includes(@.n))].n',
      '$[?(@.sub[?(@.t)])].n',
      '$[?(@.list.length==3)].n',
    ],
    ...['$[(@.length-1)].n', "$[?(@.id!='it\\'s' && !@.zz)].n", "$[?(@.id!='a;b#1^~..')].n", '$[?(@root[0].n==@.n)].n'],
    ...[
      '$[?(@.sub[?(@.u[?(@.w)])])].n',
      '$[?(@.list[(@.length-1)])].n',
      "$[?(typeof @.n=='number')].n",
      '$[?(true)].n',
      "$[?(@.id!=')]')].n",
      "$[?(@.id!='@a(b)' && @.id!='a)')].n",
    ],
  ];
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
      assert.deepEqual(
        alone.map(({ v }) => v),
        taken,
        text,
      );
    }
  });

  it('a name in quotes may hold anything', () => {
    for (const [path, name] of [
      ["$['a(b)'][?(@.c)].d", 'a(b)'],
      ['$.a#1[?(@.c)].d', 'a#1'],
    ] as const)
      assert.equal(compilePath(path, 'operator').first({ [name]: [{ c: 1, d: 2 }] })?.value, 2);
  });

  const unknown = (name: string) =>
    `"${name}" is unknown here: a member of the candidate is @.${name}, and a text is '${name}'`;
  const noFunction = (name: string) =>
    `there is no function ${name}(): compare, or use what texts and lists have, as in @.id.startsWith('E') and @.list.length`;
  const several = 'these are several expressions or none: join them by "&&" or "||", and negate by "!"';
  const method = (name: string) => `there is no method ${name}() here, but includes(), startsWith(), endsWith()`;
  const regular = 'a regular expression would let the upstream stall the service';
  const alone =
    'a filter in a filter must stand alone, as in [?(@.list[?(@.id)])], and no quoted text may be in parentheses';
  const refused: [string, string][] = [
    ["$.p[?match(@.id,'E.*')].v", `[?match(@.id,'E.*')]: ${noFunction('match')}`],
    ["$.p[? (@.id=='X')].v", "[? (@.id=='X')]: this is taken for a name: write [?(@.id=='X')]"],
    ['$.p[?!(@.a)].v', '[?!(@.a)]: this is taken for a name: write [?(!(@.a))]'],
    ["$.p[?(id=='X')].v", `[?(id=='X')]: ${unknown('id')}`],
    ["$.p[ ?(@.id=='X') ]", "[ ?(@.id=='X') ]: this is taken for a name: write [?(@.id=='X')]"],
    ["$.p[?@.id=='(X)' && (@.b)]", `[?@.id=='(X)' && (@.b)]: ${alone}`],
    ["$.p[?@.id=='X' && (@.b)]", "[?@.id=='X' && (@.b)]: this is taken for a name: write [?(@.id=='X' && (@.b))]"],
    ['$.p[?(@.id==X)]', `[?(@.id==X)]: ${unknown('X')}`],
    ["$.p[?(@.a || id=='X')]", `[?(@.a || id=='X')]: ${unknown('id')}`],
    ['$.p[?(@.a==$.b)]', '[?(@.a==$.b)]: the whole document is @root here, not $'],
    ['$.p[?(length(@.a)==2)]', `[?(length(@.a)==2)]: ${noFunction('length')}`],
    ["$.p[?(@.a='X')]", `[?(@.a='X')]: "=" assigns: write "==" to compare`],
    ['$.p[?(@.a and @.b)]', `[?(@.a and @.b)]: ${several}`],
    ['$.p[?(@.a, @.b)]', `[?(@.a, @.b)]: ${several}`],
    ['$.p[?()]', `[?()]: ${several}`],
    ["$.p[?('id'=='X')]", "[?('id'=='X')]: this is false for all"],
    ["$.p[?(@.id.contains('X'))]", `[?(@.id.contains('X'))]: ${method('contains')}`],
    ['$.p[?(@.list.some(@.f))]', `[?(@.list.some(@.f))]: ${method('some')}`],
    ["$.p[?(@.id['match']('(a+)+$'))]", `[?(@.id['match']('(a+)+$'))]: ${regular}`],
    ['$.p[?(@.id[@.m](1))]', '[?(@.id[@.m](1))]: a method must be called by its name'],
    ['$.p[?(this.a)]', '[?(this.a)]: a ThisExpression cannot be evaluated'],
    ['$.p[?(@.a ==)]', '[?(@.a ==)]: Expected expression after =='],
    ["$.p[?(@.a=='(x)')]", `[?(@.a=='(x)')]: ${alone}`],
    ['$.p[?(@.a[?(@.b)] && @.c)]', `[?(@.a[?(@.b)] && @.c)]: ${alone}`],
    ['$.p[?(@.a[?(b)])]', `[?(@.a[?(b)])]: ${unknown('b')}`],
    ['$.p[(length-1)]', `[(length-1)]: ${unknown('length')}`],
    ['$.p[length(@)]', '[length(@)]: a "(" must be in quotes, or in a filter [?(…)]'],
    ['$.p.length()', 'a "(" or "?" must be in quotes, or in a filter [?(…)]'],
    ['$.p[?(@.b)', 'the brackets do not come in pairs'],
    ['$.p[?(@.b)]]', 'expected "." or "[" at character 12'],
    ['$.p?(@.b)', 'a "(" or "?" must be in quotes, or in a filter [?(…)]'],
  ];
  for (const [path, message] of refused) {
    it(`${path} is refused`, () => {
      assert.throws(() => compilePath(path, 'operator'), { name: 'PathError', message });
    });
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
