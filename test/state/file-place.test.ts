/** The state file is in a place where it can be. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { stateFile } from '../../builtins/state-file/index.ts';
import { engineOn, folder, put, SET_BACK, started } from './file-setup.ts';

describe('the place of the state file', () => {
  const refusal = async (path: string) => Object(await engineOn(path).start().catch(Object)).message;

  it('is found beside the config file', async (t) => {
    const directory = await folder(t);
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const services = { log, now: Date.now, path: (relative: string) => join(directory, relative) };
    const engine = stateFile.engines?.file?.open({ type: 'file', path: 'here' }, services);
    await engine?.start();
    await engine?.close();
    assert.ok((await stat(join(directory, 'here'))).isFile());
  });

  it('must be one in which a file can be', async (t) => {
    const directory = await folder(t);
    const at = (name: string) => join(directory, name);
    await writeFile(at('file'), '');
    await mkdir(at('directory'));
    assert.deepEqual(await Promise.all(['none/state', 'file/state', 'directory'].map((name) => refusal(at(name)))), [
      `settings.state: ${at('none/state')} cannot be used (ENOENT): its directory does not exist: create it, or change path`,
      `settings.state: ${at('file/state')} cannot be used (ENOTDIR): a part of its path is no directory: change path`,
      `settings.state: ${at('directory')} cannot be used (EISDIR): it is a directory: add the name of a file`,
    ]);
    const server = createServer().listen(at('socket'));
    t.after(() => server.close());
    await once(server, 'listening');
    const noFile = `settings.state: ${at('socket')} cannot be used (ENXIO): it is no regular file: change path`;
    assert.equal(await refusal(at('socket')), noFile);
    assert.equal(await refusal('/dev/null'), 'settings.state: /dev/null is no regular file: change path');
  });

  const skip = process.getuid?.() === 0 ? 'root may write anywhere' : false;
  const denied = (path: string) =>
    `settings.state: ${path} cannot be used (EACCES): let the user of this process read and write it and its directory`;

  it('must be one that can be written', { skip }, async (t) => {
    const directory = await folder(t);
    await chmod(directory, 0o500);
    const path = join(directory, 'state');
    assert.equal(await refusal(path), denied(path));
  });

  it('must have a lock of the same user, or the file would pass for damaged', { skip }, async (t) => {
    const path = join(await folder(t), 'state');
    await (await started(t, path)).close();
    await chmod(`${path}-lock`, 0o000);
    assert.equal(await refusal(path), denied(`${path}-lock`));
  });

  it('must have a lock that is a file', async (t) => {
    const path = join(await folder(t), 'state');
    await (await started(t, path)).close();
    await rm(`${path}-lock`);
    await mkdir(`${path}-lock`);
    const refused = `settings.state: ${path}-lock cannot be used (EISDIR): it is a directory: add the name of a file`;
    assert.equal(await refusal(path), refused);
  });

  it('must have a lock that is no pipe, for whose reader nobody waits', { timeout: 10_000 }, async (t) => {
    const path = join(await folder(t), 'state');
    assert.equal(spawnSync('mkfifo', [`${path}-lock`]).status, 0);
    const refused = `settings.state: ${path}-lock cannot be used (ENXIO): it is no regular file: change path`;
    assert.equal(await refusal(path), refused);
  });

  it('must lead to the file that was opened, or a process that starts now would keep state of its own', async (t) => {
    const path = join(await folder(t), 'state');
    const area = (await started(t, path)).area('a');
    await put(area, 'key', '1');
    for (const name of [path, `${path}-lock`]) {
      await rename(name, `${name}.old`);
      const gone = { message: `the state file ${name} was deleted or replaced: restart all its processes` };
      await assert.rejects(area.get('key'), gone);
      await writeFile(name, '');
      // A process that opens a new file uses the same lock.
      spawnSync(process.execPath, ['-e', SET_BACK, `${path}-lock`, '1']);
      await assert.rejects(area.compareAndSet('key', '1', '2'), gone);
      await rename(`${name}.old`, name);
      assert.equal(await area.get('key'), '1');
    }
  });

  it('is that of the file behind a link, which is made if there is none', async (t) => {
    const directory = await folder(t);
    const path = join(directory, 'state');
    await symlink(path, join(directory, 'link'));
    const engine = await started(t, join(directory, 'link'));
    await put(engine.area('a'), 'key', '1');
    assert.equal(await (await started(t, path)).area('a').get('key'), '1');
    // Processes that know it by two names have one lock.
    assert.deepEqual((await readdir(directory)).sort(), ['link', 'state', 'state-lock']);
  });
});
