/** Plugins that are packages are found as Node.js finds them. */
import assert from 'node:assert/strict';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { loadConfig } from '../../config/index.ts';
import { builtins, config, folder, load } from './support.ts';

const plugin = (name: string) => `export default { name: "${name}", hooks: {} };`;
const manifest = (fields: object) => JSON.stringify({ name: 'pkg', type: 'module', ...fields });
const withSources = (...sources: string[]) => config({ settings: { plugins: sources.map((source) => ({ source })) } });

async function namesOf(t: TestContext, sources: string[], files: Record<string, string>): Promise<string[]> {
  const { plugins } = await load(t, withSources(...sources), { files });
  return plugins.filter(({ operator }) => operator).map(({ definition }) => definition.name);
}

test('a subpath that a pattern of the exports matches', async (t) => {
  const files = {
    'node_modules/all/package.json': manifest({ exports: { './*': './*' } }),
    'node_modules/all/plugins/a.js': plugin('all-a'),
    'node_modules/@scope/pkg/package.json': manifest({ exports: { './*': { import: './lib/*.js' } } }),
    'node_modules/@scope/pkg/lib/sub/path.js': plugin('scoped'),
    'node_modules/named/package.json': manifest({ exports: { './*.js': './src/*.mjs', './internal/*': null } }),
    'node_modules/named/src/b.mjs': plugin('named-b'),
    'node_modules/named/src/internal/c.mjs': plugin('never'),
  };
  assert.deepEqual(await namesOf(t, ['all/plugins/a.js', '@scope/pkg/sub/path', 'named/b.js'], files), [
    'all-a',
    'scoped',
    'named-b',
  ]);
});

test('conditions are those of an import, the first that holds in the order of the manifest', async (t) => {
  const nested = {
    browser: './wrong.js',
    require: './wrong.cjs',
    node: { development: './wrong.js', require: './wrong.cjs', import: { default: './right.js' } },
    default: './wrong.js',
  };
  const files = {
    'node_modules/nested/package.json': manifest({
      exports: { '.': nested, './null': { import: null, default: nested } },
    }),
    'node_modules/nested/right.js': plugin('nested'),
    'node_modules/none/package.json': manifest({ exports: { browser: './a.js' } }),
    'node_modules/none/a.js': plugin('none'),
  };
  assert.deepEqual(await namesOf(t, ['nested'], files), ['nested']);
});

test('a package in CommonJS, one without exports and one in TypeScript', async (t) => {
  const files = {
    'node_modules/cjs/package.json': JSON.stringify({ name: 'cjs', main: './lib' }),
    'node_modules/cjs/lib/index.js': 'module.exports = { name: "cjs", hooks: {} };',
    'node_modules/cjs/more.cjs': 'module.exports = { name: "more", hooks: {} };',
    'node_modules/typed/package.json': manifest({ exports: { '.': './plugin.ts', './c': './common.cts' } }),
    'node_modules/typed/plugin.ts': `const name: string = 'typed'; export default { name, hooks: {} };`,
    'node_modules/typed/common.cts': `const name: string = 'common'; export = { name, hooks: {} };`,
  };
  assert.deepEqual(await namesOf(t, ['cjs', 'cjs/more.cjs', 'typed', 'typed/c'], files), [
    'cjs',
    'more',
    'typed',
    'common',
  ]);
});

test('the package that the config file is in, by its own name and by its imports', async (t) => {
  const files = {
    'package.json': manifest({
      name: 'own',
      exports: { './plugins/*': './src/*.js' },
      imports: { '#local/*': './src/*.js', '#dependency': 'dependency', '#fs': 'fs', '#gone': './gone.js' },
    }),
    'src/a.js': plugin('own-a'),
    'src/b.js': plugin('own-b'),
    'node_modules/dependency/package.json': manifest({ exports: './main.js' }),
    'node_modules/dependency/main.js': plugin('dependency'),
  };
  assert.deepEqual(await namesOf(t, ['own/plugins/a', '#local/b', '#dependency'], files), [
    'own-a',
    'own-b',
    'dependency',
  ]);
});

test('a package that is linked finds what is installed beside the place where it lies', async (t) => {
  const store = 'node_modules/.pnpm';
  const dir = await folder(t, {
    'deep/config.yaml': JSON.stringify(withSources('linked')),
    [`${store}/linked@1/node_modules/linked/package.json`]: manifest({ exports: { import: './main.js' } }),
    [`${store}/linked@1/node_modules/linked/main.js`]: `import { name } from 'inner'; export default { name, hooks: {} };`,
    [`${store}/inner@1/node_modules/inner/package.json`]: manifest({ exports: { import: './main.js' } }),
    [`${store}/inner@1/node_modules/inner/main.js`]: `export const name = 'inner';`,
  });
  await symlink(join(dir, store, 'linked@1/node_modules/linked'), join(dir, 'node_modules/linked'));
  await symlink(join(dir, store, 'inner@1/node_modules/inner'), join(dir, store, 'linked@1/node_modules/inner'));
  const { plugins } = await loadConfig({ file: join(dir, 'deep/config.yaml'), env: {}, builtins });
  assert.equal(plugins.at(-1)?.definition.name, 'inner');
});

test('the nearest node_modules wins, and a folder without a package in it does not hide the next', async (t) => {
  const dir = await folder(t, {
    'a/config.yaml': JSON.stringify(withSources('near', 'far')),
    'a/node_modules/near/package.json': manifest({ exports: './main.js' }),
    'a/node_modules/near/main.js': plugin('nearest'),
    'node_modules/near/package.json': manifest({ exports: './main.js' }),
    'node_modules/near/main.js': plugin('too-far'),
    'node_modules/far/package.json': manifest({ exports: './main.js' }),
    'node_modules/far/main.js': plugin('far'),
  });
  const { plugins } = await loadConfig({ file: join(dir, 'a/config.yaml'), env: {}, builtins });
  assert.deepEqual(
    plugins.slice(-2).map(({ definition }) => definition.name),
    ['nearest', 'far'],
  );
});

test('a path with an extension is a file first, and then perhaps in a package', async (t) => {
  const files = {
    'plugins/a.js': plugin('file'),
    'node_modules/plugins/package.json': manifest({ exports: { './*': './*' } }),
    'node_modules/plugins/a.js': plugin('package'),
    'node_modules/plugins/b.js': plugin('package-b'),
  };
  assert.deepEqual(await namesOf(t, ['plugins/a.js', 'plugins/b.js'], files), ['file', 'package-b']);
});
