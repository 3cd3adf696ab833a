/** CONTRIBUTING.md names files that there are, and its blocks are recipes. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { blocksOf, missingPaths, pathsOf, readPage } from '../support/docs.ts';

const PAGE = 'CONTRIBUTING.md';
const page = await readPage(PAGE);

describe(PAGE, () => {
  it('names only files and folders that there are', () => {
    assert.deepEqual(missingPaths(pathsOf(page)), []);
  });

  it('every block is a recipe or the set-up', () => {
    const others = blocksOf(page).filter(({ notes }) => !notes.has('file'));
    assert.deepEqual(
      others.map(({ text }) => text.split('\n', 1)[0]),
      ['npm ci'],
    );
  });

  it('a new stage touches two files', () => {
    const [, section = ''] = page.split('\n## Add a stage\n');
    const touched = blocksOf(section.split('\n## ')[0] ?? '').map(({ notes }) => notes.get('file'));
    assert.deepEqual(touched, ['kernel/stages.ts', 'kernel/pipeline.ts']);
  });
});
