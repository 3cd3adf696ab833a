import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { folderWith, launchCli } from './run.ts';
import { KEY } from './service-config.ts';
import { lastLine, startIn, TIME, urlOf, withPlugin } from './started.ts';

/** A plugin that does something, in the fourth line of its file, when it gets a signal. */
function onSignal(body: string): Record<string, string> {
  return withPlugin(`export default { name: 'p', hooks: { onResponseSent() {} } };
process.on('SIGUSR2', leave);
function leave() {
${body}
}
`);
}

describe('an error that nobody foresaw is one line in the log and exit code 1', { concurrency: 4 }, () => {
  const cases: [string, string, string][] = [
    [
      'an exception',
      'throw new TypeError("one\\ntwo");',
      'uncaught exception: TypeError: one\\\\ntwo \\(at .*/p\\.mjs:\\d+:\\d+\\)\\)',
    ],
    ['what is no error', 'throw undefined;', 'uncaught exception: undefined'],
    ['what has no text', 'throw Object.create(null);', 'uncaught exception: an error that cannot be shown'],
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
    const running = await startIn(
      t,
      onSignal('Promise.reject(new Error("lost")); Promise.reject(Object.create(null));'),
    );
    await running.output(lastLine);
    running.child.kill('SIGUSR2');
    await running.output(/ERROR unhandled rejection, of a promise that nobody awaits: Error: lost \(at .*\)\n/);
    await running.output(/ERROR unhandled rejection, of a promise that nobody awaits: an error that cannot be shown\n/);
    assert.equal((await fetch(`${await urlOf(running)}/health`)).status, 200);
    running.child.kill('SIGTERM');
    assert.equal((await running.ended).code, 0);
  });
});

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
      assert.equal(lines.filter(({ msg }) => msg.startsWith('GET /requests')).length, 20);
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

  it('on stderr as long as there is no log', async (t) => {
    const cwd = await folderWith(t, withPlugin('process.exit(7);'));
    const { ended } = launchCli(t, ['config', 'validate', '-c', 'c.yaml'], { cwd, env: { SERVICE_PRIVATE_KEY: KEY } });
    const place = `(at ${pathToFileURL(`${cwd}/p.mjs`)}:1:9)`;
    const why = `the process was ended by code that is not its own, such as a plugin's: process.exit(7) ${place}`;
    assert.deepEqual(await ended, { code: 7, signal: null, stdout: '', stderr: `error: ${why}\n` });
  });
});
