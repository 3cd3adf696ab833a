import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseJsonInSteps } from '../../plugins-sdk/parse-json.ts';

/** Beyond the length up to which a container is parsed at once. */
const LONG = 40_000;

const many = (member: (i: number) => string) => Array.from({ length: LONG / 4 }, (_, i) => member(i)).join(',');

async function outcome(text: string): Promise<unknown> {
  try {
    return { value: await parseJsonInSteps(text) };
  } catch (error) {
    return error instanceof SyntaxError ? 'SyntaxError' : error;
  }
}

function expected(text: string): unknown {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return 'SyntaxError';
  }
}

async function assertSame(text: string): Promise<void> {
  assert.deepEqual(await outcome(text), expected(text));
}

/** JSON texts that are long, with white space anywhere. */
const longText = fc
  .tuple(
    fc.array(fc.jsonValue({ maxDepth: 4 }), { minLength: 1, maxLength: 12 }),
    fc.constantFrom('', ' ', '\n', ' \t\r\n', ' '.repeat(17_000)),
    fc.constantFrom('["x"]', '{"a":1}', '"long"', '12345', '[[],{}]'),
    fc.integer({ min: 1, max: 9000 }),
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

describe('parseJsonInSteps', () => {
  it('makes of long documents what JSON.parse makes of them', async () => {
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
      '1'.repeat(LONG),
    ];
    for (const document of documents) await assertSame(document);
  });

  it('keeps the order of keys, and of duplicates the last value', async () => {
    const text = `{"z":0,"dup":1,${many((i) => `"k${i}":${i}`)},"dup":[${many(() => '2')}],"5":0,"z":3}`;
    assert.equal(JSON.stringify(await parseJsonInSteps(text)), JSON.stringify(JSON.parse(text)));
  });

  it('takes `__proto__` for an ordinary key, long or short', async () => {
    const long = many(() => '1');
    for (const text of [`{"__proto__":[${long}],"a":1}`, `{"a":[${long}],"__proto__":{"b":1}}`]) {
      const value = await parseJsonInSteps(text);
      assert.deepEqual(Object.keys(value ?? {}).sort(), ['__proto__', 'a']);
      assert.equal(Object.getPrototypeOf(value), Object.prototype);
      assert.equal(JSON.stringify(value), JSON.stringify(JSON.parse(text)));
    }
  });

  it('refuses what JSON.parse refuses', async () => {
    const long = many(() => '1');
    const documents = [
      `[${long},]`,
      `[,${long}]`,
      `[${long},,${long}]`,
      `[${long},${' '.repeat(LONG)},1]`,
      `[${long}`,
      `[${long}}`,
      `[${long}]]`,
      `[${long}] 1`,
      `1 [${long}]`,
      `[${long}]x`,
      `[[${long}],]`,
      `[[${long}] 1]`,
      `[1 [${long}]]`,
      `[[${long}][${long}]]`,
      `["a":[${long}]]`,
      `{[${long}]}`,
      `{"a"[${long}]}`,
      `{"a":"b":[${long}]}`,
      `{"a":1 [${long}]}`,
      `{1:[${long}]}`,
      `{"a":[${long}],}`,
      `{,"a":[${long}]}`,
      `{"a":[${long}] "b":1}`,
      `{${long}}`,
      `{${many((i) => `"k${i}":${i}`)},}`,
      `{${many((i) => `"k${i}":${i}`)},"a"}`,
      `["${'a'.repeat(LONG)}]`,
      `["${'a'.repeat(LONG)}\\"]`,
      `[${long},01]`,
      `[${long},\u00a01]`,
      `[${many(() => '[}')}]`,
      `[${many(() => '{"a":1]')}]`,
      `]${long}[`,
      '',
      ' ',
      '[',
    ];
    for (const document of documents) {
      assert.equal(expected(document), 'SyntaxError', document.slice(0, 40));
      assert.equal(await outcome(document), 'SyntaxError', document.slice(0, 40));
    }
  });

  it('agrees with JSON.parse on any long text, whole or damaged', async () => {
    const damage = fc.tuple(
      fc.nat(),
      fc.constantFrom('', ',', '"', '[', ']', '{', '}', ':', ' ', '\\', '1', 'x'),
      fc.boolean(),
    );
    await fc.assert(
      fc.asyncProperty(longText, fc.option(damage), async (text, change) => {
        if (change === null) return assertSame(text);
        const [position, character, replaces] = change;
        const at = position % (text.length + 1);
        return assertSame(text.slice(0, at) + character + text.slice(at + (replaces ? 1 : 0)));
      }),
      { numRuns: 150 },
    );
  });

  it('lets other work run in between', async () => {
    let turns = 0;
    let done = false;
    const count = () => {
      turns += 1;
      if (!done) setImmediate(count);
    };
    setImmediate(count);
    await parseJsonInSteps(`[${many((i) => `"${i}${'x'.repeat(100)}"`)}]`);
    done = true;
    assert.ok(turns > 10, `${turns} turns for a mebibyte`);
  });
});
