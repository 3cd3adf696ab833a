/** The program starts from source, wherever it lies and whoever starts it. */
import assert from 'node:assert/strict';
import { cp, mkdir, readdir, readFile, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { folderWith, launch, PACKAGE_ROOT } from './run.ts';

/** Says what it is, and where it runs. */
const MAIN = `
import { Type } from 'typebox';
import yaml from 'yaml';
import { text } from './text.ts';
const libraries = [Type.String().type, yaml.parse('1')];
console.log(JSON.stringify([text, libraries, import.meta.url, import.meta.filename]));
`;

const MANIFEST: { exports: Record<string, unknown> } = JSON.parse(
  await readFile(join(PACKAGE_ROOT, 'package.json'), 'utf8'),
);

/** A source tree of the program with a main module of its own, and what `npm install` brings. */
async function sourceTree(t: TestContext) {
  const folder = await realpath(await folderWith(t));
  for (const part of ['cli', 'node_modules', 'plugins-sdk', 'service', 'verify']) await mkdir(join(folder, part));
  for (const file of ['cli/bin.js', 'cli/program.js', 'package.json'])
    await cp(join(PACKAGE_ROOT, file), join(folder, file), { recursive: true });
  const write = (file: string, text: string) => writeFile(join(folder, file), text);
  await write('cli/main.ts', MAIN);
  await write('cli/text.ts', `export const text: string = 'first';`);
  const exported = Object.values<unknown>(MANIFEST.exports).map(String);
  for (const file of exported.filter((target) => /^[^*]*\.ts$/.test(target))) await write(file, '');
  const installed = join(PACKAGE_ROOT, 'node_modules');
  for (const name of await readdir(installed))
    if (!name.startsWith('.')) await symlink(join(installed, name), join(folder, 'node_modules', name));
  const start = async (cwd = folder): Promise<unknown[]> => {
    const { code, stdout, stderr } = await launch(t, process.execPath, ['cli/bin.js'], { cwd }).ended;
    assert.deepEqual([code, stderr], [0, '']);
    return JSON.parse(stdout);
  };
  return { folder, write, start };
}

describe('the program from source', () => {
  it('starts from few files, which are made again when a source has changed, and knows where its source lies', async (t) => {
    const { folder, write, start } = await sourceTree(t);
    const source = pathToFileURL(join(folder, 'cli/main.ts')).href;
    const [first, ...rest] = [await start(), await start()];
    assert.deepEqual(rest, [first]);
    const [text, libraries, url, file] = first ?? [];
    assert.deepEqual([text, libraries, url], ['first', ['string', 1], source]);
    assert.match(String(file), new RegExp(`^${folder}/\\.cache/program/[^/]+/main\\.js$`));

    await write('cli/text.ts', `export const text: string = 'second';`);
    const [changed, , , other] = await start();
    assert.equal(changed, 'second');
    assert.notEqual(other, file);

    await rm(dirname(String(other)), { recursive: true });
    assert.equal((await start())[0], 'second');
    await write('.cache/program/current.json', '{');
    assert.equal((await start())[0], 'second');

    const moved = join(await realpath(await folderWith(t)), 'moved');
    await rename(folder, moved);
    t.after(() => rm(moved, { recursive: true, force: true }));
    assert.equal((await start(moved))[2], pathToFileURL(join(moved, 'cli/main.ts')).href);
  });

  it('starts from its modules where nothing can be written', async (t) => {
    const { folder, write, start } = await sourceTree(t);
    await write('.cache', 'no folder');
    const file = join(folder, 'cli/main.ts');
    assert.deepEqual(await start(), ['first', ['string', 1], pathToFileURL(file).href, file]);
  });

  it('leaves plugins what is installed for them', async (t) => {
    const { start, folder, write } = await sourceTree(t);
    const own = 'plugins/node_modules/typebox';
    await mkdir(join(folder, own), { recursive: true });
    await write(`${own}/package.json`, '{"name": "typebox", "version": "9.9.9", "exports": "./a.mjs"}');
    await write(`${own}/a.mjs`, 'export const own = true;');
    await write('plugins/p.mjs', `export { own } from 'typebox';`);
    await write(
      'cli/main.ts',
      `const plugin = new URL('../plugins/p.mjs', import.meta.url).href;
       console.log(JSON.stringify(await import(plugin)));`,
    );
    assert.deepEqual(await start(), { own: true });
  });
});
