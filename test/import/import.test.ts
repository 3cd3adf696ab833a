/** The file that `import` writes. `transcripts/` has what is in it, and what is said of it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, chown, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { folderWith, launch, PROGRAM, runCli } from '../cli/run.ts';

const api = `openapi: 3.0.3
info: { title: Coin Prices, version: '1' }
servers: [{ url: https://api.example }]
paths:
  /price: { get: { description: '${'long '.repeat(100)}', responses: {} } }
  /prices: { get: { operationId: '${'x'.repeat(60)}', responses: {} } }
`;
const config = `version: '1.0'
apis:
  - name: other
    url: https://other.example
    auth: { type: free }
    endpoints:
      - { name: e, path: /e }
`;

const withFile = (t: TestContext, more: Readonly<Record<string, string>> = {}) =>
  folderWith(t, { 'api.yaml': api, ...more });

describe('the file that import writes', () => {
  const skip = spawnSync('prlimit', ['--version']).status === 0 ? false : 'there is no prlimit';
  it('is whole, or is not there: of a disk that is full no half of a config is left', { skip }, async (t) => {
    const cwd = await withFile(t);
    const program = ['--fsize=512:unlimited', process.execPath, PROGRAM, 'import', 'api.yaml', '--out'];
    const full = async (...args: string[]) => {
      const { code, stderr } = await launch(t, 'prlimit', [...program, ...args], { cwd }).ended;
      assert.equal(code, 1);
      assert.match(stderr, /\nerror: .*\/c\.yaml cannot be written: EFBIG\n$/);
      return (await readdir(cwd)).sort();
    };
    assert.deepEqual(await full('c.yaml'), ['api.yaml']);
    await writeFile(join(cwd, 'c.yaml'), config);
    assert.deepEqual(await full('c.yaml', '--merge'), ['api.yaml', 'c.yaml']);
    assert.equal(await readFile(join(cwd, 'c.yaml'), 'utf8'), config);
  });

  it('is reached by no link', async (t) => {
    const cwd = await withFile(t);
    await symlink('elsewhere.yaml', join(cwd, 'link.yaml'));
    const link = 'error: link.yaml is a symbolic link: name the file that it leads to\n';
    for (const more of [[], ['--merge']])
      assert.equal((await runCli(t, ['import', 'api.yaml', '--out', 'link.yaml', ...more], { cwd })).stderr, link);
    assert.deepEqual((await readdir(cwd)).sort(), ['api.yaml', 'link.yaml']);
  });

  it('is not written to a folder that cannot be written to', async (t) => {
    const cwd = await withFile(t);
    await chmod(cwd, 0o555);
    // Modes do not stop the superuser, but what is no real file system does.
    const folder = process.getuid?.() === 0 ? '/sys' : cwd;
    const { stderr } = await runCli(t, ['import', 'api.yaml', '--out', `${folder}/c.yaml`], { cwd });
    assert.match(stderr, /\nerror: .*c\.yaml cannot be written: (?:EACCES|EROFS|EPERM)\n$/);
    await chmod(cwd, 0o755);
  });

  it('keeps its mode and its owner with --merge', async (t) => {
    const cwd = await withFile(t, { 'c.yaml': config });
    await chmod(join(cwd, 'c.yaml'), 0o640);
    // Nobody but root may give a file away.
    if (process.getuid?.() === 0) await chown(join(cwd, 'c.yaml'), 4321, 4322);
    const { uid, gid } = await stat(join(cwd, 'c.yaml'));
    const { stderr } = await runCli(t, ['import', 'api.yaml', '--out', 'c.yaml', '--merge'], { cwd });
    assert.equal(stderr, 'note: 2 endpoints\n');
    const after = await stat(join(cwd, 'c.yaml'));
    assert.deepEqual([after.mode & 0o777, after.uid, after.gid], [0o640, uid, gid]);
  });
});
