/** A line that was logged gets out, and no reader of the log holds the process up. */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { LogSink } from '../../service/log-sink.ts';
import { eventOf } from '../support/wait.ts';
import { environment, folderWith, launch } from './run.ts';
import { loggingProgram } from './started.ts';

const messages = (stdout: string) =>
  stdout
    .split('\n')
    .filter(Boolean)
    .map((line): string => JSON.parse(line).msg);

/** Logs more than a reader who stalls lets be written. */
const FLOOD = `const big = 'x'.repeat(1000);
  for (let i = 0; i < 20; i++) { for (let j = 0; j < 1000; j++) log.info(big); await new Promise(setImmediate); }`;

describe('a line that was logged gets out', () => {
  const endings: [string, string, number][] = [
    ['when the event loop runs dry', '', 0],
    ['on process.exit', 'process.exit(3);', 3],
    ['on an error that nobody catches', 'throw new Error("boom");', 1],
    ['on a rejection that nobody catches', 'await Promise.reject(new Error("boom"));', 1],
  ];
  for (const [what, ending, code] of endings) {
    it(what, async (t) => {
      const ended = await launch(
        t,
        process.execPath,
        loggingProgram(`log.info('first'); log.warn('second'); ${ending}`),
      ).ended;
      assert.deepEqual([ended.code, messages(ended.stdout)], [code, ['first', 'second']]);
    });
  }

  it('while the process lives on', async (t) => {
    const running = launch(t, process.execPath, loggingProgram(`log.info('alive'); setInterval(() => {}, 1000);`));
    await running.output(/"msg":"alive"/);
  });

  it('in order and complete, however many there are', async (t) => {
    const body = `for (let i = 0; i < 20000; i++) { log.info('n' + i); if (i % 1000 === 0) await new Promise(setImmediate); }
      log.flush(); process.exit(0);`;
    const { code, stdout } = await launch(t, process.execPath, loggingProgram(body)).ended;
    assert.equal(code, 0);
    assert.deepEqual(
      messages(stdout),
      Array.from({ length: 20_000 }, (_, i) => `n${i}`),
    );
  });

  it('before a line with which more than 64 KiB would wait', async (t) => {
    const file = openSync(join(await folderWith(t), 'log'), 'w');
    const sink = new LogSink(file);
    const sizes = [1, 2].map(() => {
      sink.write(`${'.'.repeat(32_999)}\n`);
      return fstatSync(file).size;
    });
    sink.flush();
    closeSync(file);
    assert.deepEqual(sizes, [0, 33_000]);
  });

  it('to a file, also more of them in one turn than can wait', async (t) => {
    const folder = await folderWith(t);
    const file = openSync(join(folder, 'log'), 'w');
    const program = loggingProgram(`for (let i = 0; i < 6000; i++) log.info(i + '.'.repeat(996));`);
    const child = spawn(process.execPath, program, { env: environment(), stdio: ['ignore', file, 'ignore'] });
    await eventOf(child, 'close');
    closeSync(file);
    const kept = messages(readFileSync(join(folder, 'log'), 'utf8')).map((message) => Number.parseInt(message, 10));
    assert.deepEqual(kept, [...Array(6000).keys()]);
  });
});

describe('a reader does not decide over the process', () => {
  const begin = (t: TestContext, body: string): ChildProcess => {
    const child = spawn(process.execPath, loggingProgram(body), {
      env: environment(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    t.after(() => child.kill('SIGKILL'));
    return child;
  };
  const errors = (child: ChildProcess) => {
    let text = '';
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    return () => text;
  };

  it('that is gone before the first line', async (t) => {
    const child = begin(
      t,
      `process.once('SIGTERM', () => { log.info('late'); process.exit(0); });
      console.error('ready'); setInterval(() => log.info('unread'), 20);`,
    );
    const stderr = errors(child);
    child.stdout?.destroy();
    await eventOf(child.stderr ?? child, 'data');
    child.kill('SIGTERM');
    assert.deepEqual(await eventOf(child, 'close'), [0, null]);
    assert.equal(stderr(), 'ready\n');
  });

  it('that goes between the last flush and the exit', async (t) => {
    const child = begin(
      t,
      `process.once('SIGTERM', () => { log.info('late'); process.exit(0); });
      log.info('ready'); setInterval(() => {}, 1000);`,
    );
    const stderr = errors(child);
    await eventOf(child.stdout ?? child, 'data');
    child.stdout?.destroy();
    child.kill('SIGTERM');
    assert.deepEqual(await eventOf(child, 'close'), [0, null]);
    assert.equal(stderr(), '');
  });

  it('that stalls does not hold up the exit', async (t) => {
    const body = `${FLOOD}
      process.once('SIGTERM', () => process.exit(0));
      console.error('full'); setInterval(() => {}, 1000);`;
    const child = begin(t, body);
    await eventOf(child.stderr ?? child, 'data');
    child.kill('SIGTERM');
    assert.deepEqual(await eventOf(child, 'exit'), [0, null]);
  });

  it('that stalls and then reads on gets whole lines and the number of those it missed', async (t) => {
    const body = `${FLOOD}
      console.error('full'); setInterval(() => {}, 1000);`;
    const child = begin(t, body);
    await eventOf(child.stderr ?? child, 'data');
    let text = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      if (text.includes('dropped')) child.kill('SIGTERM');
    });
    await eventOf(child, 'close');
    const lines = text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
    const reports = lines.filter(({ msg }) => msg === 'log lines dropped: the reader is too slow');
    const written = lines.filter(({ msg }) => msg.startsWith('xxx')).length;
    assert.equal(reports.length, 1);
    assert.equal(written + reports[0].count, 20_000);
  });
});

describe('LogSink', () => {
  it('discards what cannot be written, and says nothing', () => {
    const sink = new LogSink(987_654);
    sink.write('lost\n');
    sink.flush();
    sink.flush();
  });
});
