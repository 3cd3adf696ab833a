/** What `plugin new` prints can be pasted, and works. */
import assert from 'node:assert/strict';
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { folderWith, launch, PACKAGE_ROOT, runCli } from './run.ts';

/** The commands that were printed. */
function commandsIn(stdout: string): string[] {
  return [...stdout.matchAll(/^ {2}(.* --test .*)$/gm)].map(([, command = '']) => command);
}

/** Runs the commands where the user stands, as they would: in a shell. */
async function pasteAll(t: TestContext, stdout: string, cwd: string): Promise<void> {
  const commands = commandsIn(stdout);
  assert.equal(commands.length, 1, stdout);
  for (const command of commands) {
    const ended = await launch(t, 'sh', ['-c', command], { cwd }).ended;
    assert.equal(ended.code, 0, `${command}\n${ended.stdout}${ended.stderr}`);
  }
}

describe('what plugin new prints', { concurrency: 2 }, () => {
  it('is commands that work where the user stands, whatever the paths are', async (t) => {
    const cwd = join(await folderWith(t), "it's my folder");
    await mkdir(join(cwd, 'here'), { recursive: true });
    for (const dir of ['../new $plugins', join(cwd, 'absolute'), '-dash']) {
      const { stdout, stderr } = await runCli(t, ['plugin', 'new', 'price-floor', `--dir=${dir}`], {
        cwd: join(cwd, 'here'),
      });
      assert.equal(stderr, '');
      await pasteAll(t, stdout, join(cwd, 'here'));
    }
  });

  it('is a command that works below the folder of the service', async (t) => {
    const target = await folderWith(t);
    const cwd = join(PACKAGE_ROOT, 'docs');
    const made = await launch(t, 'npm', ['run', '-s', 'cli', '--', 'plugin', 'new', 'price-floor', '--dir', target], {
      cwd,
    }).ended;
    await pasteAll(t, made.stdout, cwd);
  });

  it('is a command that works where the package is installed', async (t) => {
    const project = await folderWith(t, { 'package.json': '{ "private": true }' });
    await mkdir(join(project, 'node_modules/.bin'), { recursive: true });
    await mkdir(join(project, 'sub'));
    await symlink(PACKAGE_ROOT, join(project, 'node_modules/signed-data-proxy'));
    await symlink('../signed-data-proxy/cli/bin.js', join(project, 'node_modules/.bin/signed-data-proxy'));
    const cwd = join(project, 'sub');
    const args = ['signed-data-proxy', 'plugin', 'new', 'price-floor', '--dir', '..'];
    const made = await launch(t, 'npx', args, { cwd }).ended;
    await pasteAll(t, made.stdout, cwd);
  });
});
