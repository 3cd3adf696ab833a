/** A service whose event loop no longer turns ends, and others go on. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { configText } from './service-config.ts';
import { postTo, startIn, TIME, urlOf, withPlugin } from './started.ts';

/** A service with a plugin whose hook does something, in the third line of its file, for whoever asks for it. */
async function startWith(t: TestContext, body: string, env: Readonly<Record<string, string>> = {}) {
  const plugin = `import { execSync } from 'node:child_process';
function block() {
${body}
}
export default { name: 'p', hooks: { onHttpRequest({ headers }) { if (headers.block) block(); } } };
`;
  const running = await startIn(t, withPlugin(plugin, 'http://127.0.0.1:1'), { SERVICE_WATCHDOG: '3', ...env });
  const [, id = ''] = await running.output(/prices\/eth (0x\w+)/);
  const url = await urlOf(running);
  const ask = async (extra: Readonly<Record<string, string>> = {}) => {
    return (await postTo(url, id, extra)).status;
  };
  return { ...running, ask };
}

const WHY = 'the event loop has not turned for 3 s: the process ends, to be started again';

describe('a service whose event loop no longer turns ends with a line that says why', { concurrency: 2 }, () => {
  // `watchdog.test.ts` has a loop.
  const cases: [string, string][] = [
    ['an expression that backtracks', `/^(a+)+$/.test('a'.repeat(100) + 'b');`],
    ['promises without end', 'const next = () => Promise.resolve().then(next); next();'],
    ['a call that JavaScript cannot leave', `execSync('sleep 600');`],
  ];
  for (const [what, body] of cases) {
    it(`${what}, by SIGKILL`, async (t) => {
      const { ask, ended } = await startWith(t, body, { LOG_FORMAT: 'json' });
      assert.equal(await ask(), 502);
      await assert.rejects(ask({ block: 'yes' }));
      const { code, signal, stdout, stderr } = await ended;
      assert.deepEqual([code, signal, stderr], [null, 'SIGKILL', '']);
      const { time, ...line } = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '');
      assert.match(time, new RegExp(`^${TIME}$`));
      assert.deepEqual(line, { level: 'error', msg: WHY });
    });
  }
});

it('a service without plugins of operators is watched, too', async (t) => {
  const loop = `process.on('SIGUSR2', () => { for (;;); });`;
  const env = { SERVICE_WATCHDOG: '3', NODE_OPTIONS: '--import ./loop.mjs' };
  const { child, output, ended } = await startIn(t, { 'c.yaml': configText(), 'loop.mjs': loop }, env);
  await output(/listening on/);
  child.kill('SIGUSR2');
  const { signal, stdout } = await ended;
  assert.deepEqual([signal, stdout.trimEnd().endsWith(`ERROR ${WHY}`)], ['SIGKILL', true]);
});

describe('a service goes on', { concurrency: 3 }, () => {
  const BLOCK = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5000);';

  it('that was stopped for longer, or suspended', async (t) => {
    const { child, ask, stop } = await startWith(t, '');
    child.kill('SIGSTOP');
    await sleep(5000);
    child.kill('SIGCONT');
    assert.equal(await ask(), 502);
    await sleep(2000);
    assert.equal(await ask(), 502);
    assert.equal((await stop()).code, 0);
  });

  for (const [what, env] of [
    ['that a debugger holds up', { NODE_OPTIONS: '--inspect=127.0.0.1:0' }],
    ['with SERVICE_WATCHDOG=0', { SERVICE_WATCHDOG: '0' }],
  ] as const)
    it(what, async (t) => {
      const { ask, stop } = await startWith(t, BLOCK, env);
      assert.equal(await ask({ block: 'yes' }), 403);
      assert.equal((await stop()).code, 0);
    });
});
