/** A config file is read within bounds, and each fault of it has its line and column. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { ConfigErrors, loadConfig } from '../../config/index.ts';
import { parseConfig, readConfigFile } from '../../config/yaml.ts';
import { deferred } from '../../lib/time.ts';
import { builtins, config, folder, load } from './support.ts';

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

test('the wait for a file system that does not answer is 5 seconds', async (t) => {
  const path = join(await folder(t, { 'c.yaml': 'a: 1' }), 'c.yaml');
  const asked = deferred<void>();
  t.mock.timers.enable({ apis: ['setTimeout'] });
  t.mock.method(fs, 'read', () => asked.resolve());
  const failed = failure(readConfigFile(path));
  await asked.promise;
  t.mock.timers.tick(5000);
  assert.equal(await failed, `${path}: was not read to its end within 5000 ms`);
});

test('a file of exactly 1 MiB is read', async (t) => {
  const dir = await folder(t, { 'c.yaml': `a: "${'x'.repeat(1024 * 1024 - 5)}"` });
  assert.equal(String((await readConfigFile(join(dir, 'c.yaml'))).a).length, 1024 * 1024 - 5);
});

test('white space that is no indentation may be a tab', () => {
  assert.deepEqual(parseConfig('a:\tb\t\n\t\n\t# c\nd: "\te"\n', 'c.yaml'), { a: 'b', d: '\te' });
});

test('a key __proto__ changes no prototype', () => {
  assert.equal(syntaxErrors('__proto__:\n  polluted: 1\n'), 'c.yaml:1:1: the key "__proto__" is not allowed');
  assert.equal(Reflect.get({}, 'polluted'), undefined);
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

test('numbers that a double can hold are kept', () => {
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
});

test('an alias stands for the last value before it with its anchor, which a value may give again', () => {
  const cases: readonly (readonly [string, unknown])[] = [
    ['{a: &x [&y 1], b: &y 2, c: *x, d: *y}', { a: [1], b: 2, c: [1], d: 2 }],
    ['{a: &z [a, &z {b: 1}], c: *z}', { a: ['a', { b: 1 }], c: { b: 1 } }],
  ];
  for (const [text, expected] of cases) assert.deepEqual(parseConfig(text, 'c.yaml'), expected);
  assert.equal(syntaxErrors('{a: &z "q", b: &z [*z]}'), 'c.yaml:1:20: alias *z has no anchor before it');
});

test('150 uses of one anchor are no bomb', () => {
  const tree = parseConfig(`a: &x [1]\nb: [${Array(150).fill('*x').join(', ')}]\n`, 'c.yaml');
  assert.ok(Array.isArray(tree.b) && tree.b.length === 150);
});

test('nesting has a bound, also where a parser would run out of stack', () => {
  const nested = (depth: number) => `a: ${'['.repeat(depth)}1${']'.repeat(depth)}`;
  assert.equal(syntaxErrors(nested(63)), '');
  assert.equal(syntaxErrors(nested(100)), 'c.yaml:1:67: nested more than 64 levels deep');
  for (const opening of ['[', '{', '- ', '? '])
    assert.match(syntaxErrors(opening.repeat(200_000)), /^c\.yaml:1:\d+: is nested too deeply$/);
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
