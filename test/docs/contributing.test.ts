/** CONTRIBUTING.md names files that there are, and its blocks are recipes. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { PACKAGE_ROOT } from '../cli/run.ts';
import { blocksOf, missingPaths, patched, pathsOf, readPage } from '../support/docs.ts';

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

  it('every diff finds its lines in the files of today', async () => {
    const files = new Map<string, string>();
    for (const { notes, text } of blocksOf(page).filter(({ language }) => language === 'diff')) {
      const file = notes.get('file') ?? '';
      files.set(file, patched(files.get(file) ?? (await readFile(join(PACKAGE_ROOT, file), 'utf8')), text));
    }
    assert.deepEqual(
      [...files.keys()],
      ['builtins/index.ts', 'builtins/cors.ts', 'kernel/stages.ts', 'kernel/pipeline.ts'],
    );
  });

  it('a new stage touches two files', () => {
    const [, section = ''] = page.split('\n## Add a stage\n');
    const touched = blocksOf(section.split('\n## ')[0] ?? '').map(({ notes }) => notes.get('file'));
    assert.deepEqual(touched, ['kernel/stages.ts', 'kernel/pipeline.ts']);
  });

  it('the workflow runs both gates', async () => {
    const workflow = await readFile(join(PACKAGE_ROOT, '.github/workflows/ci.yml'), 'utf8');
    const jobs: Record<string, { steps: { run?: string }[] }> = parse(workflow).jobs;
    const runs = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run }) => run ?? []));
    assert.deepEqual(runs, ['.ci/run', '.ci/nightly']);
  });
});
