/** Foreign code that ends the process leaves a line in the log, and no success. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { lastLine, onSignal, startIn, TIME } from './started.ts';

describe("code that is not the program's and ends the process leaves a line in the log, and no success", {
  concurrency: 4,
}, () => {
  const cases: [string, number, number][] = [
    ['process.exit(7)', 7, 7],
    ['process.exit(0)', 0, 1],
    ['process.exit()', 0, 1],
  ];
  for (const [call, asked, code] of cases) {
    it(call, async (t) => {
      const running = await startIn(t, onSignal(call), { LOG_FORMAT: 'json' }, { ownGroup: true });
      await running.output(/"msg":"prices\/all/);
      const url = (await running.output(/listening on (http:[^"]+)/))[1];
      for (let i = 0; i < 20; i++) await (await fetch(`${url}/requests/${i}`)).text();
      running.child.kill('SIGUSR2');
      const ended = await running.ended;
      assert.equal(ended.code, code);
      const lines = ended.stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      assert.equal(lines.filter(({ msg, route }) => msg === 'request' && route === '/requests/:requestId').length, 20);
      const { time, ...line } = lines.at(-1);
      assert.match(time, new RegExp(`^${TIME}$`));
      const msg = `the process was ended by code that is not its own, such as a plugin's: exit code ${asked}`;
      assert.deepEqual(line, { level: 'error', msg });
    });
  }

  it('and an exception of a listener of the exit leaves one, too', async (t) => {
    const running = await startIn(
      t,
      onSignal('process.on("exit", () => { throw new Error("late"); });\nprocess.kill(process.pid);'),
    );
    await running.output(lastLine);
    running.child.kill('SIGUSR2');
    const { code, stdout } = await running.ended;
    assert.equal(code, 1);
    assert.match(
      stdout,
      new RegExp(`INFO stopped\n${TIME} ERROR uncaught exception: Error: late \\(at .*/p\\.mjs:4:\\d+\\)\\)\n$`),
    );
  });
});
