/** The recipes of CONTRIBUTING.md can be followed to the letter. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { environment, PACKAGE_ROOT } from '../cli/run.ts';
import { type Block, blocksOf, patched, readPage } from '../support/docs.ts';

const PAGE = 'CONTRIBUTING.md';
const recipes = blocksOf(await readPage(PAGE)).filter(({ notes }) => notes.has('file'));

const SOURCES = [
  'kernel',
  'http',
  'builtins',
  'lib',
  'service',
  'plugins-sdk',
  'config',
  'cli',
  'verify',
  'package.json',
  'tsconfig.json',
];

/** Tries what the recipes add, as a client would. */
const TRIAL = 'test/docs/recipes.trial.ts';

function apply(folder: string, { language, notes, text }: Block): void {
  const file = join(folder, notes.get('file') ?? '');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, language === 'diff' ? patched(readFileSync(file, 'utf8'), text) : text);
}

describe(`the recipes of ${PAGE}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'sdp-recipes-'));
  after(() => rmSync(folder, { recursive: true }));

  before(() => {
    const filter = (path: string) => !path.endsWith('/anvil');
    for (const name of [...SOURCES, 'test/support', TRIAL])
      cpSync(join(PACKAGE_ROOT, name), join(folder, name), { recursive: true, filter });
    symlinkSync(join(PACKAGE_ROOT, 'node_modules'), join(folder, 'node_modules'));
    for (const recipe of recipes) apply(folder, recipe);
  });

  const run = (...args: string[]) => {
    const options = { cwd: folder, env: environment(), encoding: 'utf8', timeout: 120_000 } as const;
    const { status, stdout, stderr } = spawnSync(process.execPath, args, options);
    assert.equal(status, 0, `${stdout}${stderr}`);
  };

  it('pass the tests that they come with, and do what they say', () => {
    const tests = recipes.flatMap(({ notes }) => notes.get('file')?.match(/.*\.test\.ts$/) ?? []);
    assert.equal(tests.length, 2);
    run('--import', 'tsx', '--test', '--test-force-exit', ...tests, TRIAL);
  });

  it('have the right types', () => {
    const files = recipes.flatMap(({ notes }) => notes.get('file') ?? []);
    writeFileSync(join(folder, 'recipes.json'), JSON.stringify({ extends: './tsconfig.json', include: files }));
    run(join(PACKAGE_ROOT, 'node_modules/typescript/bin/tsc'), '--noEmit', '-p', 'recipes.json');
  });
});
