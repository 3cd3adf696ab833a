/** SERVICE_WATCHDOG takes seconds, and says what is wrong with others. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { folderWith, runCli } from './run.ts';
import { configText, KEY } from './service-config.ts';
import { lastLine, startIn, TIME, withPlugin } from './started.ts';

describe('SERVICE_WATCHDOG', () => {
  for (const value of ['x', '-1', '1.5', '1e3', '100000']) {
    it(`refuses ${value}`, async (t) => {
      const cwd = await folderWith(t, { 'c.yaml': configText() });
      const env = { SERVICE_PRIVATE_KEY: KEY, SERVICE_WATCHDOG: value };
      const rule = 'must be a whole number of seconds below 100000, or 0 for none';
      assert.deepEqual(await runCli(t, ['start', '-c', 'c.yaml'], { cwd, env }), {
        code: 1,
        signal: null,
        stdout: '',
        stderr: `error: SERVICE_WATCHDOG ${rule}, not "${value}"\n`,
      });
    });
  }

  it('ends a service that loops, by SIGKILL with a line that says why; it is read from the variables file, too; an empty one counts as none', async (t) => {
    const files = { ...withPlugin('for (;;);'), '.env': 'SERVICE_WATCHDOG=3\n' };
    const [looping, other] = await Promise.all([
      startIn(t, files),
      startIn(t, { 'c.yaml': configText() }, { SERVICE_WATCHDOG: '' }),
    ]);
    const { code, signal, stdout, stderr } = await looping.ended;
    assert.deepEqual([code, signal, stderr], [null, 'SIGKILL', '']);
    const why = 'the event loop has not turned for 3 s: the process ends, to be started again';
    assert.match(stdout, new RegExp(`(^|\n)${TIME} ERROR ${why}\n$`));
    await other.output(lastLine);
    other.child.kill('SIGTERM');
    assert.equal((await other.ended).code, 0);
  });
});
