/** Plugins that are packages are found as Node.js finds them. */
import assert from 'node:assert/strict';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadConfig } from '../../config/index.ts';
import { builtins, config, folder } from './support.ts';

const plugin = (name: string) => `export default { name: "${name}", hooks: {} };`;
const manifest = (fields: object) => JSON.stringify({ name: 'pkg', type: 'module', ...fields });
const withSources = (...sources: string[]) => config({ settings: { plugins: sources.map((source) => ({ source })) } });

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
  const names = plugins.slice(-2).map(({ definition }) => definition.name);
  assert.deepEqual(names, ['nearest', 'far']);
});
