/** `npm start` is the service itself: signals, files and the exit code are its own. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { folderWith, launch, PACKAGE_ROOT } from './run.ts';
import { configText, KEY } from './service-config.ts';
import { lastLine } from './started.ts';

it('npm start exits 1 with one line on an error', async (t) => {
  const cwd = await folderWith(t);
  const { code, stdout, stderr } = await launch(
    t,
    'npm',
    ['--prefix', PACKAGE_ROOT, 'start', '--silent', '--', '-c', 'c.yaml'],
    { cwd },
  ).ended;
  assert.deepEqual([code, stdout, stderr], [1, '', `error: ${join(cwd, 'c.yaml')}: file not found\n`]);
});

it('npm start makes the service the child of npm, with no shell between that would get its SIGHUP', async (t) => {
  const plugin = `console.log('pid ' + process.pid + ' below ' + process.ppid);
    export default { name: 'p', hooks: { onResponseSent() {} } };`;
  const config = configText(undefined, 'settings: { plugins: [{ source: ./p.mjs }] }');
  const files = { 'c.yaml': config, 'p.mjs': plugin, '.env': `SERVICE_PRIVATE_KEY=${KEY}\n` };
  const cwd = await folderWith(t, files);
  const running = launch(t, 'npm', ['--prefix', PACKAGE_ROOT, 'start', '--silent', '--', '-c', 'c.yaml'], { cwd });
  const [, pid, parent] = await running.output(/pid (\d+) below (\d+)\n/);
  assert.equal(Number(parent), running.child.pid);
  await running.output(lastLine);
  process.kill(Number(pid), 'SIGHUP');
  await running.output(
    /INFO config reloaded\n\S+ INFO = prices\/eth \S+\n\S+ INFO = prices\/all \S+\n\S+ INFO plugins were set up anew/,
  );
  const { code, signal, stdout, stderr } = await running.stop();
  assert.deepEqual([code, signal, stderr], [0, null, '']);
  assert.match(stdout, /INFO stopped\n$/);
});
