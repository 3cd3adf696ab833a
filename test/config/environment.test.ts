/** Variables come from the environment first, and then from .env. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadEnvironment } from '../../config/index.ts';
import { folder } from './support.ts';

test('.env of the directory is read, and the real environment wins', async (t) => {
  const cwd = await folder(t, { '.env': 'A=file\nB="two words"\nEMPTY=\nC=file\n' });
  const before = { ...process.env };
  assert.deepEqual(await loadEnvironment({ cwd, env: { A: 'real', C: '', D: 'real', E: undefined } }), {
    A: 'real',
    B: 'two words',
    EMPTY: '',
    C: '',
    D: 'real',
  });
  assert.deepEqual({ ...process.env }, before);
});

test('a variable that is undefined in the real environment does not hide that of the file', async (t) => {
  const cwd = await folder(t, { '.env': 'A=file\n' });
  assert.deepEqual(await loadEnvironment({ cwd, env: { A: undefined } }), { A: 'file' });
});

test('without .env, or with a directory of that name, the real environment is all', async (t) => {
  const cwd = await folder(t);
  assert.deepEqual(await loadEnvironment({ cwd, env: { A: 'x' } }), { A: 'x' });
  await mkdir(join(cwd, '.env'));
  assert.deepEqual(await loadEnvironment({ cwd, env: { A: 'x' } }), { A: 'x' });
});

test('a given file replaces .env and is relative to the directory', async (t) => {
  const cwd = await folder(t, { '.env': 'A=default\nB=default\n', 'prod.env': 'A=prod\n' });
  assert.deepEqual(await loadEnvironment({ cwd, envFile: 'prod.env', env: {} }), { A: 'prod' });
  assert.deepEqual(await loadEnvironment({ cwd: '/', envFile: join(cwd, 'prod.env'), env: {} }), { A: 'prod' });
});

test('a given file that cannot be read is an error that names it', async (t) => {
  const cwd = await folder(t);
  const fails = (envFile: string, message: string) => {
    return assert.rejects(loadEnvironment({ cwd, envFile, env: {} }), { name: 'ConfigErrors', message });
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
    await assert.rejects(loadEnvironment({ cwd, env: {} }), { name: 'ConfigErrors', message });
  }
  await writeFile(join(cwd, '.env'), `\ufeff${text}`);
  assert.deepEqual(await loadEnvironment({ cwd, env: {} }), { KEY: 'caf\u00e9' });
});

test('a file cannot replace the prototype of the result', async (t) => {
  const cwd = await folder(t, { '.env': '__proto__=x\nA=1\n' });
  const env = await loadEnvironment({ cwd, env: {} });
  assert.equal(env.A, '1');
  assert.equal(Object.getPrototypeOf(env), Object.prototype);
});
