/** Foreign code that ends the process leaves a line in the log, and no success. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { lastLine, onSignal, startIn, TIME } from './started.ts';

describe("code that is not the program's and ends the process leaves a line in the log, and no success", {
  concurrency: 4,
}, () => {
  const cases: [string, { code: number | null; signal?: string }, string?][] = [
    ['process.exit(7)', { code: 7 }],
    ['process.exit(0)', { code: 1 }],
    ['process.exit()', { code: 1 }],
    ['process.reallyExit(5)', { code: 5 }],
    ['process.abort()', { code: null, signal: 'SIGABRT' }],
    ['process.kill(process.pid, "SIGKILL")', { code: null, signal: 'SIGKILL' }, 'process.kill(<pid>, SIGKILL)'],
    ['process.kill(process.pid, 9)', { code: null, signal: 'SIGKILL' }, 'process.kill(<pid>, 9)'],
    ['process.kill(0, "SIGKILL")', { code: null, signal: 'SIGKILL' }, 'process.kill(0, SIGKILL)'],
    ['process.kill("0", 9)', { code: null, signal: 'SIGKILL' }, 'process.kill(0, 9)'],
    ['process.kill(-process.pid, "SIGKILL")', { code: null, signal: 'SIGKILL' }, 'process.kill(-<pid>, SIGKILL)'],
    ['process.on("exit", () => { throw new Error("late"); }); process.exit(7)', { code: 1 }, 'process.exit(7)'],
    ['process.on("exit", () => process.exit(0)); process.exit(7)', { code: 1 }, 'process.exit(7)'],
  ];
  for (const [call, { code, signal = null }, shown = call] of cases) {
    it(call, async (t) => {
      const running = await startIn(t, onSignal(call), { LOG_FORMAT: 'json' }, { ownGroup: true });
      await running.output(/"msg":"prices\/all/);
      const url = (await running.output(/listening on (http:[^"]+)/))[1];
      for (let i = 0; i < 20; i++) await (await fetch(`${url}/requests/${i}`)).text();
      running.child.kill('SIGUSR2');
      const ended = await running.ended;
      assert.deepEqual([ended.code, ended.signal], [code, signal]);
      const lines = ended.stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      assert.equal(lines.filter(({ msg, route }) => msg === 'request' && route === '/requests/:requestId').length, 20);
      const { level, msg } = lines.at(-1);
      const how = shown.replace('<pid>', String(running.child.pid));
      assert.equal(level, 'error');
      const why = `the process was ended by code that is not its own, such as a plugin's: ${how} (at`;
      assert.ok(msg.startsWith(why), msg);
      assert.match(msg, /leave \(file:.*\/p\.mjs:4:\d+\)\)$/);
    });
  }

  it('but not a signal that the process is only asked about, or listens to', async (t) => {
    const running = await startIn(
      t,
      onSignal('process.kill(0, 0); process.kill(process.pid, 0); process.kill(process.pid, "SIGTERM");'),
    );
    await running.output(lastLine);
    running.child.kill('SIGUSR2');
    const { code, stdout, stderr } = await running.ended;
    assert.deepEqual([code, stderr, stdout.includes('ERROR')], [0, '', false]);
  });

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
