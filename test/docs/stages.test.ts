/** docs/stages.md has every stage and type, each to its end. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { transform } from 'esbuild';
import { readPage } from '../support/docs.ts';

it('docs/stages.md has every type of the stages, each to its end', async () => {
  const [, types = ''] = /^## Types\n\n```text\n(.*?)^```$/ms.exec(await readPage('docs/stages.md')) ?? [];
  await transform(types, { loader: 'ts' });
  const names = (text: string) => [...text.matchAll(/^export (?:interface|type) (\w+)/gm)].map(([, name]) => name);
  const declared = names(await readPage('kernel/values.ts')).filter((name) => name !== 'Values');
  assert.deepEqual(names(types), [...declared, 'AroundCall', 'Flight']);
});
