/** Coverage leaves out no source file that holds more than types. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { transform } from 'esbuild';
import { readPage } from '../support/docs.ts';

it('coverage leaves out no source file that holds more than types', async () => {
  const { exclude }: { exclude: string[] } = JSON.parse(await readPage('.c8rc.json'));
  const files = exclude.filter((path) => !path.includes('*'));
  assert.ok(files.length > 5);
  for (const file of files) {
    const { code } = await transform(await readPage(file), { loader: 'ts' });
    assert.equal(code, '', file);
  }
});
