/** A process of its own is gone with the service, whatever it is doing. */

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { open } from 'lmdb';
import { OwnedProcess } from '../../lib/process/child-process.ts';
import { folderWith, launch, PACKAGE_ROOT } from '../cli/run.ts';
import { eventually, isAlive } from '../support/wait.ts';

const SILENT: { stdio: 'ignore'[] } = { stdio: ['ignore', 'ignore', 'ignore'] };

function start(t: TestContext, script: string): OwnedProcess {
  const owned = new OwnedProcess(['-e', script], SILENT);
  t.after(() => owned.kill());
  return owned;
}

describe('a process of its own', () => {
  it('tells once how it ended, and leaves no listener', async (t) => {
    const listeners = process.listenerCount('exit');
    assert.equal(await start(t, 'process.exit(3)').ended, 'ended with code 3');
    assert.equal(await start(t, "process.kill(process.pid, 'SIGTERM')").ended, 'was ended by SIGTERM');
    const killed = start(t, 'setInterval(() => undefined, 1000)');
    killed.kill('had enough');
    killed.kill('too late');
    assert.equal(await killed.ended, 'had enough');
    assert.equal(killed.child.signalCode, 'SIGKILL');
    assert.equal(process.listenerCount('exit'), listeners);
  });

  it('may be impossible to start', async () => {
    const owned = new OwnedProcess([], { ...SILENT, cwd: '/no/such/folder' });
    assert.match(await owned.ended, /^cannot be started: spawn .+ ENOENT$/);
    owned.kill();
  });

  it('has no file open that this process has', async (t) => {
    const store = open({ path: join(await folderWith(t), 'state') });
    t.after(() => store.close());
    const owned = start(
      t,
      `const isFile = (fd) => { try { return fs.fstatSync(fd).isFile(); } catch { return false; } };
      process.exit(Array.from({ length: 200 }, (_, fd) => fd).some(isFile) ? 1 : 0);`,
    );
    assert.equal(await owned.ended, 'ended with code 0');
  });

  it('has no pipe or socket open that this process was started with', async (t) => {
    const child = "for (const fd of [98, 99]) try { fs.writeSync(fd, 'from the child'); } catch {}";
    const script = `
      import { OwnedProcess } from './lib/process/child-process.ts';
      console.log(await new OwnedProcess(['-e', ${JSON.stringify(child)}], ${JSON.stringify(SILENT)}).ended);`;
    const args = [process.execPath, '--import', 'tsx', '--input-type=module', '-e', script];
    const { ended } = launch(t, 'bash', ['-c', '{ "$0" "$@" 99>&1 | cat; } 98>&1', ...args], { cwd: PACKAGE_ROOT });
    assert.equal((await ended).stdout, 'ended with code 0\n');
  });

  /** In a call that takes half an hour and hears nothing. */
  const stuck = "require('crypto').pbkdf2Sync('', '', 2 ** 31 - 1, 64, 'sha512')";
  const service = (rest: string) => `
    import { OwnedProcess } from './lib/process/child-process.ts';
    const { child } = new OwnedProcess(['-e', ${JSON.stringify(stuck)}], ${JSON.stringify(SILENT)});
    console.log('process', child.pid);
    ${rest}`;

  for (const [how, rest, signal] of [
    ['exits', 'process.exit(0)', undefined],
    ['throws', "throw new Error('oh')", undefined],
    ['is killed', 'setInterval(() => undefined, 1000)', 'SIGKILL'],
  ] as const) {
    const skip = signal !== undefined && !existsSync('/usr/bin/setpriv');
    it(`is gone with a service that ${how}, whatever it is doing`, { skip }, async (t) => {
      const args = ['--import', 'tsx', '--input-type=module', '-e', service(rest)];
      const { child, output, ended } = launch(t, process.execPath, args, { cwd: PACKAGE_ROOT });
      const [, pid] = await output(/process (\d+)/);
      if (signal !== undefined) child.kill(signal);
      await ended;
      await eventually(() => !isAlive(Number(pid)), 'the process to be gone');
    });
  }
});
