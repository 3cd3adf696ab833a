/** Variables come from the environment first, and then from .env. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { loadEnvironment } from '../../config/index.ts';
import { folder } from './support.ts';

test('.env of the directory is read, and the real environment wins', async (t) => {
  const cwd = await folder(t, { '.env': 'A=file\nB="two words"\nEMPTY=\nC=file\n' });
  const before = { ...process.env };
  assert.deepEqual(await loadEnvironment(join(cwd, '.env'), true, { A: 'real', C: '', D: 'real' }), {
    A: 'real',
    B: 'two words',
    EMPTY: '',
    C: '',
    D: 'real',
  });
  assert.deepEqual({ ...process.env }, before);
});

test('without .env, or with a directory of that name, the real environment is all', async (t) => {
  const cwd = await folder(t);
  assert.deepEqual(await loadEnvironment(join(cwd, '.env'), true, { A: 'x' }), { A: 'x' });
  await mkdir(join(cwd, '.env'));
  assert.deepEqual(await loadEnvironment(join(cwd, '.env'), true, { A: 'x' }), { A: 'x' });
});

test('a given file that cannot be read is an error that names it', async (t) => {
  const cwd = await folder(t);
  const fails = (envFile: string, message: string) => {
    return assert.rejects(loadEnvironment(join(cwd, envFile), false, {}), { name: 'ConfigErrors', message });
  };
  await fails('none.env', `${cwd}/none.env: file not found`);
  await fails('.', `${cwd}: is a directory, expected a file`);
});

test('a file that is not UTF-8 is an error: its values would be others', async (t) => {
  const cwd = await folder(t);
  const text = 'KEY="caf\u00e9"\n';
  for (const bytes of [Buffer.from(`\ufeff${text}`, 'utf16le'), Buffer.from(text, 'latin1')]) {
    await writeFile(join(cwd, '.env'), bytes);
    const message = `${cwd}/.env: is not UTF-8 text`;
    await assert.rejects(loadEnvironment(join(cwd, '.env'), true, {}), { name: 'ConfigErrors', message });
  }
  await writeFile(join(cwd, '.env'), `\ufeff${text}`);
  assert.deepEqual(await loadEnvironment(join(cwd, '.env'), true, {}), { KEY: 'caf\u00e9' });
});

test('a file cannot replace the prototype of the result', async (t) => {
  const cwd = await folder(t, { '.env': '__proto__=x\nA=1\n' });
  const env = await loadEnvironment(join(cwd, '.env'), true, {});
  assert.equal(env.A, '1');
  assert.equal(Object.getPrototypeOf(env), Object.prototype);
});

const CUT = (name: string) => `the value of ${name} ends before the #: write it in quotes to keep the rest`;
const IGNORED = 'this line is ignored: write NAME=value';

/** What is read of a file, and what is warned of, by its line. */
async function readIn(t: TestContext, text: string) {
  const cwd = await folder(t, { '.env': text });
  const warnings: string[] = [];
  const env = await loadEnvironment(join(cwd, '.env'), true, {}, ({ path, message }) =>
    warnings.push(`${path.replace(`${cwd}/.env:`, '')} ${message}`),
  );
  return { env, warnings };
}

test('a value that an unquoted # ends, and a line without =, are warned of and read as ever', async (t) => {
  const text =
    'KEY=secret#1\nKEY secret\n\nexport A=x#y # more\r\nB=#z\nC="q"#r\nMY NAME=x\nexport D\n"E"=x\nF=it\'s#s';
  assert.deepEqual(await readIn(t, text), {
    env: { KEY: 'secret', A: 'x', B: '', C: 'q', F: "it's" },
    warnings: [
      `1 ${CUT('KEY')}`,
      `2 ${IGNORED}`,
      `4 ${CUT('A')}`,
      `5 ${CUT('B')}`,
      `6 ${CUT('C')}`,
      `7 ${IGNORED}`,
      `8 ${IGNORED}`,
      `9 ${IGNORED}`,
      `10 ${CUT('F')}`,
    ],
  });
});

test('comments, empty lines and quoted values are not warned of', async (t) => {
  const text =
    '# a comment\n\n  # KEY secret#1\nA=x # comment\nB="a#b"\nC=\'#\'\nD="one\n two#\n#three"\nE=\n#next\nF: x\nG=`#` # c\n \t\nH=\n';
  assert.deepEqual(await readIn(t, text), {
    env: { A: 'x', B: 'a#b', C: '#', D: 'one\n two#\n#three', E: '', F: 'x', G: '#', H: '' },
    warnings: [],
  });
});
