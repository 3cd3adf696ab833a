/** A config file is read within bounds, and each fault of it has its line and column. */
import assert from 'node:assert/strict';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { ConfigErrors, loadConfig } from '../../config/index.ts';
import { parseConfig, readConfigFile } from '../../config/yaml.ts';
import { builtins, config, errorsOf, folder, load } from './support.ts';

async function failure(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ConfigErrors, String(error));
  return error.message;
}

function syntaxErrors(text: string): string {
  try {
    parseConfig(text, 'c.yaml');
  } catch (error) {
    assert.ok(error instanceof ConfigErrors, String(error));
    return error.message;
  }
  return '';
}

test('a file that cannot be read is one line that names it', async (t) => {
  const dir = await folder(t, { 'file.yaml': 'a: 1' });
  await mkdir(join(dir, 'sub'));
  await writeFile(join(dir, 'big.yaml'), `a: "${'x'.repeat(1024 * 1024)}"`);
  await writeFile(join(dir, 'latin.yaml'), Buffer.from('a: "\xe9"', 'latin1'));
  const read = (name: string) => failure(readConfigFile(join(dir, name)));
  assert.equal(await read('none.yaml'), `${dir}/none.yaml: file not found`);
  assert.equal(await read('sub'), `${dir}/sub: is a directory, expected a file`);
  assert.equal(await read('file.yaml/x'), `${dir}/file.yaml/x: cannot be read (ENOTDIR)`);
  assert.equal(await read('big.yaml'), `${dir}/big.yaml: larger than 1 MiB`);
  assert.equal(await read('latin.yaml'), `${dir}/latin.yaml: is not UTF-8 text`);
  assert.equal(await read('nul\0.yaml'), `${dir}/nul\\u0000.yaml: cannot be read (ERR_INVALID_ARG_VALUE)`);
});

test('a file without permission is one line that names it', { skip: process.getuid?.() === 0 }, async (t) => {
  const dir = await folder(t, { 'c.yaml': 'a: 1' });
  await chmod(join(dir, 'c.yaml'), 0);
  assert.equal(await failure(readConfigFile(join(dir, 'c.yaml'))), `${dir}/c.yaml: cannot be read, permission denied`);
});

test('a file of exactly 1 MiB is read', async (t) => {
  const dir = await folder(t, { 'c.yaml': `a: "${'x'.repeat(1024 * 1024 - 5)}"` });
  assert.equal(String((await readConfigFile(join(dir, 'c.yaml'))).a).length, 1024 * 1024 - 5);
});

test('text that is no config is one line with line and column', () => {
  assert.equal(
    syntaxErrors('a: 1\nb: "x\n'),
    'c.yaml:3:1: a text above begins with " and does not end: write " behind it, and \\" for one inside',
  );
  assert.equal(syntaxErrors('a: 1\n---\nb: 2\n'), 'c.yaml:2:1: expected one YAML document');
  assert.equal(syntaxErrors(''), 'c.yaml: is empty');
  assert.equal(syntaxErrors('# nothing\n'), 'c.yaml: is empty');
  assert.equal(syntaxErrors('- a\n- b\n'), 'c.yaml: expected a mapping (key: value) at the top level');
  assert.equal(syntaxErrors('just text'), 'c.yaml: expected a mapping (key: value) at the top level');
  assert.equal(
    syntaxErrors('a: !secret x\n'),
    'c.yaml:1:4: Unresolved tag: !secret: a text that begins with ! needs quotes',
  );
  assert.equal(
    syntaxErrors('a: !!binary aGk=\n'),
    'c.yaml:1:4: Unresolved tag: tag:yaml.org,2002:binary: a text that begins with ! needs quotes',
  );
});

test('a tab in the indentation is one error', () => {
  for (const [text, place] of [
    ['version: "1.0"\nserver:\n\tport: 1\n', '3:1'],
    ['a:\n  b:\n\t c: 1\n  d: 2\n', '3:1'],
    ['apis:\n  - name: x\n\turl: y\n\tendpoints:\n\t  - name: e\n', '3:1'],
    ['a:\n  -\tname: x\n    url: y\n', '2:4'],
    ['a:\n  b: 1\n  \tc: 2\n', '3:3'],
    ['a: {\n\tb: 1,\n\tc: 2 }\n', '2:1'],
    ['a: |\n\tb\n\tc\n', '2:1'],
    ['a: "x\n\ty"\n', '2:1'],
  ]) {
    const expected = `c.yaml:${place}: a tab cannot indent: write spaces, here and in the lines below`;
    assert.equal(syntaxErrors(text ?? ''), expected, text);
  }
  assert.deepEqual(parseConfig('a:\tb\t\n\t\n\t# c\nd: "\te"\n', 'c.yaml'), { a: 'b', d: '\te' });
});

test('one mistake is one error, which says what to write', () => {
  for (const [text, expected] of [
    ['a:\n  b: 1\n c: 2\n', '3:1: is not indented as the keys beside it'],
    [
      'a:\n  - b: x\n     c: y\n',
      '2:8: goes on in the next line, which is indented too far: indent it as the key of this line',
    ],
    [
      'a:\n  - b: x\n   c: y\n',
      '3:1: lacks the "- " of a list entry, or is not indented as the keys of the entry above',
    ],
    ['a: b: c\n', '1:4: holds ": ", which ends a key: write the value in quotes'],
    ['a:1\nb: 2\n', '1:1: expected "key: value", with a space after the colon'],
    ['a\n  b: 1\n', '1:1: expected "key: value", with a space after the colon'],
    ["a: 'it's'\n", "1:8: the text ended at the ' before this: inside single quotes write '' for one"],
    ['a: {b: $.c[0]}\n', '1:11: does not belong to the value before it: write the whole value in quotes'],
    ['a: "C:\\d"\n', '1:7: Invalid escape sequence \\d: write \\\\ for one \\, or the text in single quotes'],
    ['a: [1, 2\nb: 3\n', '2:1: the list that begins with [ does not end: write ], or indent this line'],
    ['a: {b: 1\nc: 2\n', '2:1: the mapping that begins with { does not end: write }, or indent this line'],
  ]) {
    assert.equal(syntaxErrors(text ?? ''), `c.yaml:${expected}`, text);
  }
  const quotes = 'write the value in quotes';
  assert.equal(
    syntaxErrors('a: @b\nc: `d\n'),
    `c.yaml:1:4: Plain value cannot start with reserved character @: ${quotes}\nc.yaml:2:4: Plain value cannot start with reserved character \`: ${quotes}`,
  );
});

test('duplicate keys are errors, also when they are written differently', () => {
  assert.equal(syntaxErrors('a: 1\nb:\n  c: 1\n  c: 2\n'), 'c.yaml:4:3: duplicate key "c"');
  assert.equal(syntaxErrors('1: a\n"1": b\n'), 'c.yaml:2:1: duplicate key "1"');
  assert.equal(
    syntaxErrors('a: 1\nb: 1\na: 1\nb: 1\n'),
    'c.yaml:3:1: duplicate key "a"\nc.yaml:4:1: duplicate key "b"',
  );
});

test('keys must be text', () => {
  const message = 'a key must be a text: write a value that begins with { or [ in quotes';
  assert.equal(syntaxErrors('? [a]\n: 1\n'), `c.yaml:1:3: ${message}`);
  assert.equal(syntaxErrors('a: {{ .Values.a }}\n'), `c.yaml:1:5: ${message}`);
});

test('a key __proto__ is refused and changes no prototype', async (t) => {
  assert.equal(syntaxErrors('__proto__:\n  polluted: 1\n'), 'c.yaml:1:1: the key "__proto__" is not allowed');
  assert.equal(Reflect.get({}, 'polluted'), undefined);
  assert.deepEqual(await errorsOf(t, 'version: "1.0"\napis: []\nconstructor: {prototype: {x: 1}}\n'), [
    'apis: must not be empty',
    'constructor: unknown key, known keys: version, server, settings, apis',
  ]);
});

test('the core schema of YAML 1.2 applies, whatever the file says', () => {
  const text = '%YAML 1.1\n---\na: yes\nb: 0o17\nc: 0x1F\nd: ~\ne: 12:30:00\nf: 2020-01-01\ng: 1_000\n<<: {h: 1}\n';
  assert.deepEqual(parseConfig(text, 'c.yaml'), {
    a: 'yes',
    b: 15,
    c: 31,
    d: null,
    e: '12:30:00',
    f: '2020-01-01',
    g: '1_000',
    '<<': { h: 1 },
  });
});

test('numbers that a double cannot hold are errors and not rounded', () => {
  const message = 'a number with more digits than can be kept, write it in quotes';
  assert.equal(syntaxErrors('a: 12345678901234567890'), `c.yaml:1:4: ${message}`);
  assert.equal(syntaxErrors('a: 0.1234567890123456789'), `c.yaml:1:4: ${message}`);
  assert.equal(syntaxErrors('a: .inf'), 'c.yaml:1:4: is not a finite number');
  assert.equal(syntaxErrors('a: .nan'), 'c.yaml:1:4: is not a finite number');
  assert.equal(syntaxErrors('a: 1e999'), 'c.yaml:1:4: is not a finite number');
  const kept = { a: 1e18, b: 0.1, c: 9007199254740992, d: 1.5e-7, e: 0, f: -2, g: 1.25 };
  const text = 'a: 1e18\nb: 0.10\nc: 9007199254740992\nd: 1.5E-7\ne: 0.0\nf: -2\ng: 1.250\n';
  assert.deepEqual(parseConfig(text, 'c.yaml'), kept);
});

test('aliases work, up to a bound', () => {
  assert.deepEqual(parseConfig('a: &x {b: 1}\nc: *x\nd: [*x, *x]\n', 'c.yaml'), {
    a: { b: 1 },
    c: { b: 1 },
    d: [{ b: 1 }, { b: 1 }],
  });
  assert.deepEqual(parseConfig('a: &x 1\nb: *x\nc: &x 2\nd: *x\n', 'c.yaml'), { a: 1, b: 1, c: 2, d: 2 });
  const bomb = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
  for (let i = 1; i < 12; i++)
    bomb.push(
      `a${i}: &a${i} [${Array(10)
        .fill(`*a${i - 1}`)
        .join(', ')}]`,
    );
  assert.match(syntaxErrors(bomb.join('\n')), /^c\.yaml:\d+:\d+: more than 100000 values, aliases counted each time$/);
  assert.match(syntaxErrors('a: &a [*a]\n'), /^c\.yaml:1:8: .*alias.*$/i);
  assert.match(syntaxErrors('a: *nobody\n'), /^c\.yaml:1:4: .*nobody.*$/);
});

test('150 uses of one anchor are no bomb', () => {
  const tree = parseConfig(`a: &x [1]\nb: [${Array(150).fill('*x').join(', ')}]\n`, 'c.yaml');
  assert.ok(Array.isArray(tree.b) && tree.b.length === 150);
});

test('nesting has a bound, also where a parser would run out of stack', () => {
  const nested = (depth: number) => `a: ${'['.repeat(depth)}1${']'.repeat(depth)}`;
  assert.equal(syntaxErrors(nested(63)), '');
  assert.equal(syntaxErrors(nested(100)), 'c.yaml:1:67: nested more than 64 levels deep');
  for (const opening of ['[', '{', '- ', '? ']) {
    assert.match(syntaxErrors(opening.repeat(200_000)), /^c\.yaml:1:\d+: is nested too deeply$/);
  }
  const indented = Array.from({ length: 100 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n');
  assert.match(syntaxErrors(indented), /^c\.yaml:\d+:\d+: nested more than 64 levels deep$/);
});

test('the number of values, and of messages, has a bound', () => {
  const keys = Array.from({ length: 100_001 }, (_, index) => `k${index}: 1`);
  assert.equal(syntaxErrors(keys.join('\n')), 'c.yaml:100000:9: more than 100000 values, aliases counted each time');
  const doubles = Array.from({ length: 1000 }, (_, index) => `k${index % 500}: 1`);
  assert.equal(syntaxErrors(doubles.join('\n')).split('\n').length, 100);
  assert.equal(syntaxErrors(']'.repeat(1000)).split('\n').length, 1);
  const unquoted = Array.from({ length: 1000 }, (_, index) => `k${index}: @x`);
  assert.equal(syntaxErrors(unquoted.join('\n')).split('\n').length, 5);
});

test('the message has a line per error and findings hold the same', async (t) => {
  const dir = await folder(t, { 'c.yaml': 'a: 1\n' });
  const error = await loadConfig({ file: join(dir, 'c.yaml'), env: {}, builtins }).catch((reason: unknown) => reason);
  assert.ok(error instanceof ConfigErrors);
  assert.equal(error.name, 'ConfigErrors');
  assert.deepEqual(
    error.message.split('\n'),
    error.findings.map(({ path, message }) => `${path}: ${message}`),
  );
});

test('a byte order mark does not matter', async (t) => {
  const text = JSON.stringify(config());
  assert.equal((await load(t, `\ufeff${text}`)).endpoints.length, 1);
});

test('what this file invites one to forget comes with its cure', () => {
  const at = (text: string) => syntaxErrors(`a: 1\n${text}\n`).split('\n')[0];
  assert.equal(at('type: *'), "c.yaml:2:7: Alias cannot be an empty string: write * in quotes, '*'");
  assert.equal(at(`keys: [\${KEY}]`), `c.yaml:2:8: write \${KEY} in quotes: without them { begins a mapping`);
  assert.equal(
    syntaxErrors(`h: {Authorization: Bearer \${KEY}, b: c}\nk: [\${ONE}, x]\nu: { url: https://\${HOST}/v1 }\nz: 1\n`),
    [
      `c.yaml:1:20: write Bearer \${KEY} in quotes: without them { begins a mapping`,
      `c.yaml:2:5: write \${ONE} in quotes: without them { begins a mapping`,
      `c.yaml:3:11: write https://\${HOST}/v1 in quotes: without them { begins a mapping`,
    ].join('\n'),
  );
  assert.equal(
    syntaxErrors(`u: { url: https://\${HOST}/v1 }\n`),
    `c.yaml:1:11: write https://\${HOST}/v1 in quotes: without them { begins a mapping`,
  );
  assert.equal(
    at('url: @x'),
    'c.yaml:2:6: Plain value cannot start with reserved character @: write the value in quotes',
  );
  assert.equal(at("type: '*'"), '');
});
