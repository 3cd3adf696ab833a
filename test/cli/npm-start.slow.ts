/** `npm start` is the service itself: signals, files and the exit code are its own. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { folderWith, launch, PACKAGE_ROOT } from './run.ts';
import { configText, KEY } from './service-config.ts';
import { lastLine } from './started.ts';

describe('npm start', { concurrency: 4 }, () => {
  it('finds files where the user stands, passes signals on and exits 0', async (t) => {
    const cwd = await folderWith(t, { 'c.yaml': configText(), '.env': `SERVICE_PRIVATE_KEY=${KEY}\n` });
    const running = launch(t, 'npm', ['--prefix', PACKAGE_ROOT, 'start', '--silent', '--', '-c', 'c.yaml'], { cwd });
    await running.output(lastLine);
    running.child.kill('SIGTERM');
    const { code, signal, stdout, stderr } = await running.ended;
    assert.deepEqual([code, signal, stderr], [0, null, '']);
    assert.match(stdout, /INFO stopped\n$/);
  });

  it('exits 1 with one line on an error', async (t) => {
    const cwd = await folderWith(t);
    const { code, stdout, stderr } = await launch(
      t,
      'npm',
      ['--prefix', PACKAGE_ROOT, 'start', '--silent', '--', '-c', 'c.yaml'],
      { cwd },
    ).ended;
    assert.deepEqual([code, stdout, stderr], [1, '', `error: ${join(cwd, 'c.yaml')}: file not found\n`]);
  });
});
