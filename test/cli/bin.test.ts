/** The program starts from source, module by module or in few files, wherever it lies. */
import assert from 'node:assert/strict';
import { cp, mkdir, readdir, readFile, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { folderWith, launch, PACKAGE_ROOT } from './run.ts';

/** Says what it is, where it runs, and what a plugin gets that has a library of its own. */
const MAIN = `
import { Type } from 'typebox';
import yaml from 'yaml';
import { text } from './text.ts';
const libraries = [Type.String().type, yaml.parse('1')];
const plugin = await import(new URL('../plugins/p.mjs', import.meta.url).href);
console.log(JSON.stringify([text, libraries, import.meta.url, import.meta.filename, plugin]));
`;

const MANIFEST: { exports: Record<string, unknown> } = JSON.parse(
  await readFile(join(PACKAGE_ROOT, 'package.json'), 'utf8'),
);

/** A source tree of the program with a main module of its own, and what `npm install` brings. */
async function sourceTree(t: TestContext) {
  const folder = await realpath(await folderWith(t));
  const own = 'plugins/node_modules/typebox';
  for (const part of ['cli', 'node_modules', 'plugins-sdk', 'service', 'tools/scripts', 'verify', own])
    await mkdir(join(folder, part), { recursive: true });
  for (const file of ['cli/bin.js', 'tools/scripts/program.ts', 'tools/scripts/globals.ts', 'package.json'])
    await cp(join(PACKAGE_ROOT, file), join(folder, file));
  const write = (file: string, text: string) => writeFile(join(folder, file), text);
  await write('cli/main.ts', MAIN);
  await write('cli/text.ts', `export const text: string = 'first';`);
  await write(`${own}/package.json`, '{"name": "typebox", "version": "9.9.9", "exports": "./a.mjs"}');
  await write(`${own}/a.mjs`, 'export const own = true;');
  await write('plugins/p.mjs', `export { own } from 'typebox';`);
  const exported = Object.values<unknown>(MANIFEST.exports).map(String);
  for (const file of exported.filter((target) => /^[^*]*\.ts$/.test(target))) await write(file, '');
  const installed = join(PACKAGE_ROOT, 'node_modules');
  for (const name of await readdir(installed))
    if (!name.startsWith('.')) await symlink(join(installed, name), join(folder, 'node_modules', name));
  const run = async (...words: string[]) => {
    const { code, stdout, stderr } = await launch(t, words[0] ?? '', words.slice(1), { cwd: folder }).ended;
    assert.deepEqual([code, stderr], [0, '']);
    return stdout;
  };
  const built = async (): Promise<unknown[]> => JSON.parse(await run('npm', 'run', '-s', 'cli'));
  const start = async (): Promise<unknown[]> => JSON.parse(await run(process.execPath, 'cli/bin.js'));
  return { folder, write, built, start };
}

describe('the program from source', () => {
  it('npm makes it of few files, anew when a source has changed; it knows where its source lies, also when that is moved', async (t) => {
    const { folder, write, built } = await sourceTree(t);
    const [source, file] = ['cli/main.ts', '.cache/built/program/main.js'].map((name) => join(folder, name));
    const said = (text: string) => [text, ['string', 1], pathToFileURL(source ?? '').href, file, { own: true }];
    assert.deepEqual(await built(), said('first'));
    await write('cli/text.ts', `export const text: string = 'second';`);
    await write('.cache/built/program/chunk-OLD.js', '');
    assert.deepEqual(await built(), said('second'));
    // What an earlier source has left is gone: the folder does not grow.
    assert.ok(!(await readdir(join(folder, '.cache/built/program'))).includes('chunk-OLD.js'));

    const moved = join(await realpath(await folderWith(t)), 'moved');
    await rename(folder, moved);
    t.after(() => rm(moved, { recursive: true, force: true }));
    const { stdout } = await launch(t, process.execPath, [join(moved, '.cache/built/cli/bin.js')]).ended;
    assert.equal(JSON.parse(stdout)[2], pathToFileURL(join(moved, 'cli/main.ts')).href);
  });

  it('starts from its modules where nothing was built', async (t) => {
    const { folder, start } = await sourceTree(t);
    const file = join(folder, 'cli/main.ts');
    assert.deepEqual(await start(), ['first', ['string', 1], pathToFileURL(file).href, file, { own: true }]);
  });
});
