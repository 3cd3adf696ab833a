import assert from 'node:assert/strict';
import { cp, mkdir, readdir, readFile, realpath, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { folderWith, launch, PACKAGE_ROOT } from './run.ts';

/** Says where the libraries come from. */
const MAIN = `
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { Compile } from 'typebox/compile';
import yaml from 'yaml';
const sound = Value.Check(Type.String(), 'a') && Compile(Type.String()).Check('a') && yaml.parse('1') === (1 as number);
const names = ['typebox', 'typebox/value', 'typebox/compile', 'yaml'];
console.log(JSON.stringify([sound, ...names.map((name) => import.meta.resolve(name))]));
`;

const INSTALLED = pathToFileURL(join(PACKAGE_ROOT, 'node_modules')).href;

const plain = [
  true,
  `${INSTALLED}/typebox/build/index.mjs`,
  `${INSTALLED}/typebox/build/value/index.mjs`,
  `${INSTALLED}/typebox/build/compile/index.mjs`,
  `${INSTALLED}/yaml/dist/index.js`,
];

/** A source tree of the program with a main module of its own, and what `npm install` brings. */
async function sourceTree(t: TestContext) {
  const folder = await realpath(await folderWith(t));
  for (const part of ['cli', 'node_modules/.cache']) await mkdir(join(folder, part), { recursive: true });
  for (const file of ['cli/bin.js', 'scripts', 'package.json'])
    await cp(join(PACKAGE_ROOT, file), join(folder, file), { recursive: true });
  await writeFile(join(folder, 'cli/main.ts'), MAIN);
  const installed = join(PACKAGE_ROOT, 'node_modules');
  for (const name of await readdir(installed))
    if (!name.startsWith('.')) await symlink(join(installed, name), join(folder, 'node_modules', name));
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await launch(t, process.execPath, args, { cwd: folder }).ended;
    assert.deepEqual([code, stderr], [0, '']);
    return stdout;
  };
  return {
    folder,
    cache: join(folder, 'node_modules/.cache/typebox'),
    prepare: () => run('--import', 'tsx', 'scripts/prepare.ts'),
    start: async (): Promise<unknown> => JSON.parse(await run('cli/bin.js')),
  };
}

describe('the program from source', () => {
  it('starts with the libraries as they are installed', async (t) => {
    const { start } = await sourceTree(t);
    assert.deepEqual(await start(), plain);
  });

  it('leaves plugins what is installed for them', async (t) => {
    const { prepare, start, folder } = await sourceTree(t);
    await prepare();
    const own = 'plugins/node_modules/typebox';
    await mkdir(join(folder, own), { recursive: true });
    await writeFile(join(folder, own, 'package.json'), '{"name": "typebox", "version": "9.9.9", "exports": "./a.mjs"}');
    await writeFile(join(folder, own, 'a.mjs'), 'export const own = true;');
    await writeFile(join(folder, 'plugins/p.mjs'), `export { own } from 'typebox';`);
    await writeFile(join(folder, 'cli/main.ts'), `console.log(JSON.stringify(await import('../plugins/p.mjs')));`);
    assert.deepEqual(await start(), { own: true });
  });

  it('starts with the few files that the install made of typebox, unless typebox has changed since', async (t) => {
    const { cache, prepare, start } = await sourceTree(t);
    await prepare();
    const bundled = pathToFileURL(cache).href;
    const [, , , , yaml] = plain;
    const files = ['typebox.js', 'typebox-value.js', 'typebox-compile.js'].map((file) => `${bundled}/${file}`);
    assert.deepEqual(await start(), [true, ...files, yaml]);

    const list = join(cache, 'modules.json');
    const made = JSON.parse(await readFile(list, 'utf8'));
    await writeFile(list, JSON.stringify({ ...made, version: `${made.version}0` }));
    assert.deepEqual(await start(), plain);
    await writeFile(list, JSON.stringify({ ...made, files: [...made.files, 'gone.js'] }));
    assert.deepEqual(await start(), plain);
    await writeFile(list, '{');
    assert.deepEqual(await start(), plain);
  });
});
