/** A log on a full disk tears no line, tells how many are lost, and holds up no exit. The output of a command is an error there. */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { eventOf, eventually } from '../support/wait.ts';
import { environment, folderWith, PROGRAM } from './run.ts';
import { configText, KEY } from './service-config.ts';
import { loggingProgram } from './started.ts';

/** Without it there is no way to make a file full, and to make room in it again, that every user may use. */
const skip = spawnSync('prlimit', ['--version']).status === 0 ? false : 'there is no prlimit';

/** Has a process get an error when it writes beyond so many bytes of a file, as it would on a full disk. */
function limit({ pid }: ChildProcess, bytes: number | 'unlimited'): void {
  const { status, stderr } = spawnSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]);
  assert.equal(status, 0, stderr.toString());
}

/** Starts a program whose log is appended to a file. @param room bytes of a file that it can write from its start. */
async function loggingTo(t: TestContext, file: string, args: readonly string[], cwd: string, room?: number) {
  const stdout = openSync(file, 'a');
  const env = { SERVICE_PRIVATE_KEY: KEY, LOG_FORMAT: 'json' };
  const limited = room === undefined ? [] : ['prlimit', `--fsize=${room}:unlimited`];
  const [command = '', ...words] = [...limited, process.execPath, ...args];
  const child = spawn(command, words, { cwd, env: environment(env), stdio: ['ignore', stdout, 'pipe'] });
  closeSync(stdout);
  t.after(() => child.kill('SIGKILL'));
  return child;
}

const fileText = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : '');

/** Every line of a file, which must be whole. */
const linesOf = (file: string) => (fileText(file).match(/.+/g) ?? []).map((line) => JSON.parse(line));

describe('a log on a disk that is full', { concurrency: 2, skip }, () => {
  it('loses no line as long as they can wait, and tears none', async (t) => {
    const cwd = await folderWith(t, { 'c.yaml': configText() });
    const file = join(cwd, 'log');
    const child = await loggingTo(t, file, [PROGRAM, 'start', '-c', 'c.yaml'], cwd);
    await eventually(() => fileText(file).includes('prices/all'));
    const url = /listening on (http:[^"]+)/.exec(fileText(file))?.[1];
    const ask = async (from: number, to: number) => {
      for (let i = from; i < to; i++) assert.equal((await fetch(`${url}/requests/${i}`)).status, 404);
    };
    // In the middle of the third line from here.
    const full = fileText(file).length + 500;
    limit(child, full);
    await ask(0, 50);
    await eventually(() => fileText(file).length === full);
    await ask(50, 100);
    limit(child, 'unlimited');
    child.kill('SIGTERM');
    assert.deepEqual(await eventOf(child, 'exit'), [0, null]);
    const messages = linesOf(file).map(({ msg }) => msg);
    assert.equal(messages.filter((msg) => msg === 'request').length, 100);
    assert.equal(messages.at(-1), 'stopped');
  });

  it('says how many lines it lost, and why, once there is room again', async (t) => {
    const cwd = await folderWith(t);
    const file = join(cwd, 'log');
    const body = `process.once('SIGUSR2', async () => {
        for (let i = 0; i < 20; i++) {
          for (let j = 0; j < 1000; j++) log.info('x'.repeat(1000));
          await new Promise(setImmediate);
        }
        console.error('done');
      });
      process.once('SIGTERM', () => process.exit(0));
      log.info('ready'); setInterval(() => {}, 1000);`;
    const child = await loggingTo(t, file, loggingProgram(body), cwd);
    await eventually(() => fileText(file).includes('ready'));
    limit(child, 100_000);
    child.kill('SIGUSR2');
    await eventOf(child.stderr ?? child, 'data');
    limit(child, 'unlimited');
    child.kill('SIGTERM');
    assert.deepEqual(await eventOf(child, 'exit'), [0, null]);
    const lines = linesOf(file);
    const written = lines.filter(({ msg }) => msg.startsWith('xxx')).length;
    const [{ level, msg, count }, ...more] = lines.filter((line) => line.msg.includes('dropped'));
    assert.deepEqual([level, msg, more], ['warn', 'log lines dropped: they cannot be written (EFBIG)', []]);
    assert.equal(written + count, 20_000);
  });

  it('is an error of a command, also where its disk has room for a part of the output', async (t) => {
    const cwd = await folderWith(t);
    for (const room of [0, 1000]) {
      const child = await loggingTo(t, join(cwd, `schema-${room}.json`), [PROGRAM, 'config', 'schema'], cwd, room);
      let said = '';
      child.stderr?.on('data', (text) => (said += text));
      assert.deepEqual(await eventOf(child, 'close'), [1, null]);
      assert.equal(said, 'error: stdout cannot be written: EFBIG\n');
    }
  });

  it('does not hold up the exit', async (t) => {
    const cwd = await folderWith(t);
    const child = await loggingTo(t, '/dev/full', loggingProgram(`log.info('lost');`), cwd);
    assert.deepEqual(await eventOf(child, 'exit'), [0, null]);
  });
});
