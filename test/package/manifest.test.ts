/** The verify package names its module and types for all tools. */
import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { writePackages } from '../../tools/scripts/packages.ts';
import { folderWith, PACKAGE_ROOT } from '../cli/run.ts';

it('the verify package names its module and types also for tools that do not read `exports`', async (t) => {
  const sources = join(PACKAGE_ROOT, 'tools/packages/verify');
  const own = await readFile(join(sources, 'package.json'), 'utf8');
  const dist = await folderWith(t, { LICENSE: '' });
  await mkdir(join(dist, 'sources/verify'), { recursive: true });
  await mkdir(join(dist, 'verify'));
  for (const [name, text] of Object.entries({
    'verify/index.js': 'export {};',
    'verify/index.d.ts': 'export {};',
    'sources/verify/package.json': own,
    'sources/verify/README.md': '',
  }))
    await writeFile(join(dist, name), text);
  const manifest = JSON.parse(await readFile(join(PACKAGE_ROOT, 'package.json'), 'utf8'));
  writePackages(dist, join(dist, 'sources'), manifest);
  const built = JSON.parse(await readFile(join(dist, 'packages/verify/package.json'), 'utf8'));
  assert.deepEqual([built.main, built.types], ['./verify/index.js', './verify/index.d.ts']);
  assert.deepEqual(built.exports, { '.': { types: './verify/index.d.ts', default: './verify/index.js' } });
});
