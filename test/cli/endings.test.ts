/** An error that nobody foresaw is one line in the log and exit code 1. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { folderWith, launchCli } from './run.ts';
import { KEY } from './service-config.ts';
import { lastLine, onSignal, startIn, TIME, urlOf, withPlugin } from './started.ts';

describe('an error that nobody foresaw is one line in the log and exit code 1', { concurrency: 4 }, () => {
  const cases: [string, string, string][] = [
    [
      'an exception',
      'throw new TypeError("one\\ntwo");',
      'uncaught exception: TypeError: one\\\\ntwo \\(at .*/p\\.mjs:\\d+:\\d+\\)\\)',
    ],
    ['a second one on top', 'setImmediate(() => { throw 2; }); throw 1;', 'uncaught exception: 1'],
  ];
  for (const [what, body, text] of cases) {
    it(what, async (t) => {
      const running = await startIn(t, onSignal(body));
      await running.output(lastLine);
      running.child.kill('SIGUSR2');
      const { code, signal, stdout, stderr } = await running.ended;
      assert.deepEqual([code, signal, stderr], [1, null, '']);
      assert.match(stdout, new RegExp(`\\n${TIME} ERROR ${text}\\n$`));
    });
  }

  it('but a promise that nobody awaits, which a client could provoke, is a line in the log only', async (t) => {
    const body = `Promise.reject(new Error("lost")); Promise.reject(Object.create(null)); Promise.reject(undefined);
      // One that a plugin gets for a request of its own.
      ask('0x', {}, {});`;
    const setup = `({ ask }) => void process.on('SIGUSR2', () => { ${body} }) ?? { hooks: { onResponseSent() {} } }`;
    const running = await startIn(t, withPlugin(`export default { name: 'p', setup: ${setup} };`));
    await running.output(lastLine);
    running.child.kill('SIGUSR2');
    await running.output(/ERROR unhandled rejection, of a promise that nobody awaits: Error: lost \(at .*\)\n/);
    await running.output(/ERROR unhandled rejection, of a promise that nobody awaits: an error that cannot be shown\n/);
    await running.output(/ERROR unhandled rejection, of a promise that nobody awaits: undefined\n/);
    await running.output(/ERROR unhandled rejection, of a promise that nobody awaits: TypeError: services\.ask takes /);
    assert.equal((await fetch(`${await urlOf(running)}/health`)).status, 200);
    assert.equal((await running.stop()).code, 0);
  });
});

it("code that is not the program's and ends the process leaves a line on stderr as long as there is no log", async (t) => {
  const cwd = await folderWith(t, withPlugin('process.exit(7);'));
  const { ended } = launchCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd, env: { SERVICE_PRIVATE_KEY: KEY } });
  const why = `the process was ended by code that is not its own, such as a plugin's: exit code 7`;
  assert.deepEqual(await ended, { code: 7, signal: null, stdout: '', stderr: `error: ${why}\n` });
});
