/** The state file is in a safe place, and of one process. */
import assert from 'node:assert/strict';
import { mkdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { stateFile } from '../../builtins/state-file/index.ts';
import { errorsOf } from '../support/config.ts';
import { engineOn, folder, put, started, systemError, watched } from './file-setup.ts';

describe('the place of the state file', () => {
  const refusal = async (path: string, given?: Parameters<typeof engineOn>[1]) => {
    const { engine } = engineOn(path, given);
    return engine.start().then(
      () => engine.close().then(() => 'started'),
      ({ message }: Error) => message,
    );
  };

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
      `settings.state: ${at('directory')} is a directory: add the name of a file`,
    ]);
    await symlink(at('nothing'), at('link'));
    assert.equal(
      await refusal(at('link')),
      `settings.state: ${at('link')} is a link to what does not exist: create an empty file there`,
    );
    assert.equal(await refusal('/dev/null'), 'settings.state: /dev/null is no regular file: change path');
  });

  const rights = 'let the user of this process read and write it and its directory';
  for (const [code, why] of [
    ['EACCES', rights],
    ['EPERM', rights],
    ['EROFS', 'its file system is read-only: set a path that can be written'],
    ['ENOSPC', 'no room is left on its disk: make room'],
    ['EDQUOT', 'the disk quota is used up: make room'],
    ['EIO', 'EIO: by the test'],
  ] as const) {
    it(`says what to do about ${code}`, async (t) => {
      const path = join(await folder(t), 'state');
      const files = watched((operation) => {
        if (operation === 'write') throw systemError(code);
      });
      assert.equal(await refusal(path, { files }), `settings.state: ${path} cannot be used (${code}): ${why}`);
      // Neither a lock nor half a file stays.
      assert.equal(await refusal(path), 'started');
    });
  }

  it('is that of the file behind a link', async (t) => {
    const directory = await folder(t);
    const path = join(directory, 'state');
    await writeFile(path, '');
    await symlink(path, join(directory, 'link'));
    const { engine } = await started(t, join(directory, 'link'));
    await put(engine.area('a'), 'key', '1');
    assert.match(await refusal(path), /is in use already/);
    await engine.close();
    assert.equal(await (await started(t, path)).engine.area('a').get('key'), '1');
  });

  it('is used by one engine at a time, whatever the lock file says', async (t) => {
    const path = join(await folder(t), 'state');
    await writeFile(`${path}.lock`, '1\n');
    const { engine } = await started(t, path);
    assert.equal(await refusal(path), `settings.state: ${path} is in use already (pid ${process.pid})`);
    await put(engine.area('a'), 'key', '1');
    await engine.close();
    assert.equal(await refusal(path), 'started');
  });

  it('needs the program that locks', async (t) => {
    const path = join(await folder(t), 'state');
    const { PATH } = process.env;
    process.env.PATH = '/nowhere';
    try {
      const needed = `settings.state: the program flock, which keeps other processes out of ${path}, is not installed: install util-linux`;
      assert.equal(await refusal(path), needed);
    } finally {
      process.env.PATH = PATH;
    }
    assert.equal(await refusal(path), 'started');
  });
});

it('the settings of the state file are checked', async () => {
  const endpoint = { name: 'e', path: '/', encoding: { type: 'int256', path: '$.a', times: '1' } };
  const apis = [{ name: 'a', url: 'https://a.example', auth: { type: 'free' }, endpoints: [endpoint] }];
  const errors = (state: unknown) => errorsOf({ settings: { state }, apis });
  assert.deepEqual(await errors({ type: 'file', path: 'state' }), []);
  assert.deepEqual(await errors({ type: 'file' }), ['settings.state.path: required key is missing']);
  for (const path of ['', 'folder/'])
    assert.deepEqual(await errors({ type: 'file', path }), [
      'settings.state.path: has the wrong form, expected: a file, relative to the config file; made if there is none (pattern [^/]$)',
    ]);
  assert.deepEqual(await errors({ type: 'file', path: 'state', sync: true }), [
    'settings.state.sync: unknown key, known keys: path, type',
  ]);
});
