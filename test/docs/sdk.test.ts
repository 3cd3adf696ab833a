/** docs/sdk.md has every name that authors may import, and its examples compile and load. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { generatedFiles } from '../../tools/scripts/generate-docs.ts';
import { namesOnPage, sdkNames } from '../../tools/scripts/sdk-reference.ts';
import { folderWith, PACKAGE_ROOT, runCli } from '../cli/run.ts';
import { filesOf, readPage } from '../support/docs.ts';

const PAGE = 'docs/sdk.md';
const page = await readPage(PAGE);
const files = filesOf(page);
const plugins = [...files.keys()].filter((name) => name.endsWith('.ts'));
const names = sdkNames().map(({ name }) => name);

describe(PAGE, () => {
  it('is what the generator writes', () => assert.equal(page, generatedFiles().get(PAGE)));

  it('has every name once', () => assert.deepEqual(namesOnPage(page).toSorted(), names.toSorted()));

  it('shows every name in an example beside it', () => {
    const [shown = ''] = page.split('\n## Further names');
    const missing = shown.split('\n## ').flatMap((section) => {
      const examples = [...filesOf(section).values()].join('');
      return namesOnPage(section).filter((name) => !new RegExp(`\\b${name}\\b`).test(examples));
    });
    assert.deepEqual(missing, []);
  });

  it('has examples that compile and load', async (t) => {
    const extended = join(PACKAGE_ROOT, 'tsconfig.json');
    const tsconfig = JSON.stringify({
      extends: extended,
      compilerOptions: { noEmit: true },
      include: ['*.ts'],
      exclude: [],
    });
    const project = { 'tsconfig.json': tsconfig, 'package.json': '{ "type": "module" }' };
    const cwd = await folderWith(t, { ...Object.fromEntries(files), ...project });
    await mkdir(join(cwd, 'node_modules/@types'), { recursive: true });
    await symlink(PACKAGE_ROOT, join(cwd, 'node_modules/signed-data-proxy'));
    await symlink(join(PACKAGE_ROOT, 'node_modules/@types/node'), join(cwd, 'node_modules/@types/node'));
    const compiler = join(PACKAGE_ROOT, 'node_modules/typescript/bin/tsc');
    const { status, stdout } = spawnSync(process.execPath, [compiler, '-p', cwd], { cwd, encoding: 'utf8' });
    assert.deepEqual([stdout, status], ['', 0]);
    const key = { SERVICE_PRIVATE_KEY: `0x${'1'.repeat(64)}` };
    const loaded = await runCli(t, ['plugins', '-c', 'config.yaml'], { cwd, env: key });
    assert.deepEqual([loaded.stderr, loaded.code], ['', 0]);
    const silent = plugins.map((name) => name.replace('.ts', '')).filter((name) => !loaded.stdout.includes(name));
    // An engine and a kind of signer are at no stage.
    assert.deepEqual(silent, ['state-short', 'signer-desk']);
  });
});
