/** SERVICE_WATCHDOG takes seconds, and says what is wrong with others. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { watchdogSeconds } from '../../service/watchdog.ts';
import { failed, folderWith, runCli } from './run.ts';
import { configText, KEY } from './service-config.ts';
import { startIn, TIME, withPlugin } from './started.ts';

describe('SERVICE_WATCHDOG', () => {
  const refused = (value: string) =>
    `SERVICE_WATCHDOG must be a whole number of seconds below 100000, or 0 for none, not "${value}"`;

  it('refuses what is no number of seconds; an empty one counts as none', async (t) => {
    assert.equal(watchdogSeconds({ SERVICE_WATCHDOG: '' }), watchdogSeconds({}));
    for (const value of ['-1', '1.5', '1e3', '100000'])
      assert.throws(() => watchdogSeconds({ SERVICE_WATCHDOG: value }), { message: refused(value) });
    const cwd = await folderWith(t, { 'c.yaml': configText() });
    const env = { SERVICE_PRIVATE_KEY: KEY, SERVICE_WATCHDOG: 'x' };
    assert.deepEqual(await runCli(t, ['start', '-c', 'c.yaml'], { cwd, env }), failed(refused('x')));
  });

  it('ends a service that loops, by SIGKILL with a line that says why; it is read from the variables file, too', async (t) => {
    const files = { ...withPlugin('for (;;);'), '.env': 'SERVICE_WATCHDOG=3\n' };
    const { ended } = await startIn(t, files);
    const { code, signal, stdout, stderr } = await ended;
    assert.deepEqual([code, signal, stderr], [null, 'SIGKILL', '']);
    const why = 'the event loop has not turned for 3 s: the process ends, to be started again';
    assert.match(stdout, new RegExp(`(^|\n)${TIME} ERROR ${why}\n$`));
  });
});
