/** A terminal that takes nothing ends no command badly. */

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { describe, it, type TestContext } from 'node:test';
import { awaited, eventually } from '../support/wait.ts';
import { environment, folderWith, PROGRAM } from './run.ts';
import { KEY } from './service-config.ts';
import { postTo, withPlugin } from './started.ts';

const hasScript = /util-linux/.test(spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout ?? '');
const [STOP, GO] = ['\x13', '\x11'];

/** A service on a terminal of its own: what is typed goes to `terminal.stdin`, what it shows comes from `terminal.stdout`. */
async function startOnTerminal(t: TestContext) {
  const plugin = `export default { name: 'p', hooks: { onHttpRequest({ headers }) { if (headers.say) console.log(headers.say); } } };`;
  const cwd = await folderWith(t, withPlugin(plugin, 'http://127.0.0.1:1'));
  const command = `echo pid $$; exec '${process.execPath}' '${PROGRAM}' start -c c.yaml`;
  const env = environment({ SERVICE_PRIVATE_KEY: KEY, TERM: 'dumb' });
  const terminal = spawn('script', ['-qefc', command, '/dev/null'], { cwd, env, stdio: 'pipe' });
  const ended = awaited(once(terminal, 'close'), () => `the end of the service, which shows ${shown}`);
  let shown = '';
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text));
  await eventually(() => shown.includes('prices/all'));
  const [, pid = ''] = /pid (\d+)/.exec(shown) ?? [];
  t.after(() => terminal.kill('SIGKILL'));
  const [, url = ''] = /listening on (http:\S+)/.exec(shown) ?? [];
  const [, id = ''] = /prices\/eth (0x\w+)/.exec(shown) ?? [];
  /** @param say what the plugin prints beside the log; on a full terminal the two may tear each other's lines. */
  const ask = async (say = '') => {
    return (await postTo(url, id, { say })).status;
  };
  return { terminal, pid: Number(pid), ask, ended, shown: () => shown };
}

describe('a terminal that takes nothing', { skip: hasScript ? false : 'there is no script of util-linux' }, () => {
  it('holds up neither the service nor its end', async (t) => {
    const { terminal, pid, ask, ended, shown } = await startOnTerminal(t);
    terminal.stdin.write(STOP);
    const isFull = async () => {
      const before = shown();
      // More than a terminal holds.
      for (let i = 0; i < 50; i++) assert.equal(await ask('x'.repeat(2000)), 502);
      return shown() === before;
    };
    await eventually(isFull, 'the terminal to be full');
    process.kill(pid, 'SIGTERM');
    assert.deepEqual(await ended, [0, null]);
  });

  it('shows what it missed when it goes on', async (t) => {
    const { terminal, pid, ask, ended, shown } = await startOnTerminal(t);
    terminal.stdin.write(STOP);
    for (let i = 0; i < 50; i++) assert.equal(await ask(), 502);
    terminal.stdin.write(GO);
    process.kill(pid, 'SIGTERM');
    assert.deepEqual(await ended, [0, null]);
    assert.equal(shown().split(' INFO prices/eth 502 ').length, 51);
    assert.match(shown(), /INFO stopped\r\n$/);
  });
});
