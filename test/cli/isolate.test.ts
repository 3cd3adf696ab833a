/** A service with an isolated plugin starts, serves and stops by the command line. */

import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import { eventually } from '../support/wait.ts';
import { folderWith, runCli } from './run.ts';
import { configText } from './service-config.ts';
import { postTo, startIn, urlOf } from './started.ts';

/** It never gives way once it is asked to. */
const spinning = `console.log('process', process.pid);
export default { name: 'p', hooks: { onHttpRequest() { console.log('spins'); for (;;); } } };
`;

const settings = 'settings: { plugins: [{ source: ./p.mjs, isolate: true, timeout: 60000 }] }';
const files = { 'c.yaml': configText('http://127.0.0.1:1', settings), 'p.mjs': spinning };

describe('a service with an isolated plugin', { concurrency: 2 }, () => {
  for (const [how, signal] of [
    ['is killed', 'SIGKILL'],
    ['is aborted', 'SIGABRT'],
  ] as const) {
    it(`that ${how} leaves no process behind`, { skip: !existsSync('/usr/bin/setpriv') }, async (t) => {
      const { child, output, ended, ...running } = await startIn(t, files);
      const [, id = ''] = await output(/prices\/eth (0x\w+)/);
      const url = await urlOf({ child, output, ended, ...running });
      const [, pid = ''] = await output(/plugin "p": process (\d+)/);
      const asked = postTo(url, id).catch(() => undefined);
      await output(/plugin "p": spins/);
      child.kill(signal);
      await ended;
      await eventually(() => !readdirSync('/proc').includes(pid));
      await asked;
    });
  }

  it('that is told to stop with its whole group ends its process itself', async (t) => {
    const { child, output, ended } = await startIn(t, files, {}, { ownGroup: true });
    await output(/plugin "p" runs in a process of its own/);
    process.kill(-(child.pid ?? assert.fail()), 'SIGTERM');
    const { code, stdout } = await ended;
    assert.equal(code, 0);
    assert.doesNotMatch(stdout, /ERROR|its process/);
  });

  it('says so in the list of plugins', async (t) => {
    const cwd = await folderWith(t, files);
    const { code, stdout } = await runCli(t, ['plugins', '-c', 'c.yaml'], { cwd });
    assert.equal(code, 0);
    assert.match(stdout, /\nonHttpRequest +fails closed\n {2}1\. p +60000 ms, isolated\n/);
  });
});
