/** Processes share a state file; one that crashes loses nothing that it acknowledged, and holds up nobody. */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { StateUnavailable } from '../../plugins-sdk/state.ts';
import { bundle } from '../support/bundle.ts';
import { eventOf, eventually } from '../support/wait.ts';
import { folder, put, SET_BACK, started } from './file-setup.ts';

interface Writer {
  readonly name: string;
  readonly child: ChildProcess;
  /** All that it has said. */
  said(): string;
  /** Resolves once it has said that. */
  until(isSo: (said: string) => boolean): Promise<void>;
  kill(): Promise<void>;
}

let program = '';
before(async () => {
  program = await bundle(fileURLToPath(new URL('file-writer.ts', import.meta.url)));
});

function writer(t: TestContext, path: string, name: string): Writer {
  const child = spawn(process.execPath, [program, path, name], { stdio: ['ignore', 'pipe', 'ignore'] });
  t.after(() => {
    child.kill('SIGKILL');
    const [, pid] = /with child (\d+)\n/.exec(text) ?? [];
    if (pid !== undefined) process.kill(Number(pid));
  });
  const closed = once(child, 'exit');
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  return {
    name,
    child,
    said: () => text,
    until: async (isSo) => {
      const look = () => {
        assert.ok(isSo(text) || (child.exitCode ?? child.signalCode) === null, `${child.signalCode} ${text}`);
        return isSo(text);
      };
      await eventually(look, () => `${isSo} of ${text.slice(-1000)}`);
    },
    kill: async () => {
      child.kill('SIGKILL');
      await closed;
    },
  };
}

/** The numbers that a writer says it has drawn. */
const drawn = (said: string) => [...said.matchAll(/^ack (\d+)\n/gm)].map(([, number = '']) => number);

/** Whether each number is the draw of the one writer who said so, in the file too. */
async function checkAll(t: TestContext, path: string, writers: readonly Writer[]): Promise<void> {
  const engine = await started(t, path);
  const seen = new Map<string, string>();
  for (const { name, said } of writers)
    for (const number of drawn(said())) {
      assert.equal(seen.get(number), undefined, `${number} was drawn twice`);
      seen.set(number, name);
      const kept = await engine.area('draws').get(number);
      assert.equal(kept?.split(' ')[0], name, `${number} of ${name}`);
    }
  await engine.close();
  assert.ok(seen.size > 0);
}

describe('processes that share a state file', () => {
  it('draw each number once, four at a time, whichever is killed, and the others go on', async (t) => {
    const path = join(await folder(t), 'state');
    const all = ['0', '1', '2', '3'].map((name) => writer(t, path, name));
    const running = [...all];
    const goOn = (one: Writer) => {
      const enough = drawn(one.said()).length + 1 + Math.floor(Math.random() * 30);
      return one.until((said) => drawn(said).length > enough);
    };
    for (let round = 0; round < 16; round++) {
      await Promise.all(running.map(goOn));
      await running[round % 4]?.kill();
      await Promise.all(running.filter((_, place) => place !== round % 4).map(goOn));
      const next = writer(t, path, `${round + 4}`);
      running[round % 4] = next;
      all.push(next);
    }
    await Promise.all(running.map((one) => one.kill()));
    await checkAll(t, path, all);
    const [refusal] = all.map(({ said }) => said()).filter((said) => said.includes('refused'));
    assert.equal(refusal, undefined);
  });

  const limit = ({ child }: Writer, bytes: number | 'unlimited') => {
    const { status, stderr } = spawnSync('prlimit', ['--pid', `${child.pid}`, `--fsize=${bytes}:unlimited`]);
    assert.equal(status, 0, stderr.toString());
  };
  const skip = spawnSync('prlimit', ['--version']).status === 0 ? false : 'there is no prlimit';

  it('confirm nothing while the system takes no more, and all again once it does', { skip }, async (t) => {
    const path = join(await folder(t), 'state');
    const running = writer(t, path, 'one');
    await running.until((said) => drawn(said).length > 50);
    limit(running, (await stat(path)).size);
    await running.until((said) => said.split('refused').length > 20);
    const said = running.said();
    // The second is the library's word for what was written in part.
    const reasons = ['File too large', 'Input/output error'].map(
      (reason) => `refused the state file ${path} cannot be written: ${reason}`,
    );
    for (const refusal of said.match(/^refused .*(?=\n)/gm) ?? []) assert.ok(reasons.includes(refusal), refusal);
    limit(running, 'unlimited');
    await running.until((now) => drawn(now).length > drawn(said).length + 50);
    await running.kill();
    await checkAll(t, path, [running]);
  });

  it('confirm nothing while others keep them from the newest commit', async (t) => {
    const path = join(await folder(t), 'state');
    const engine = await started(t, path);
    const area = engine.area('a');
    const kept = ['b', 'c'];
    for (const key of kept) await put(area, key, 'kept');
    const other = spawn(process.execPath, [
      '-e',
      `${SET_BACK} console.log('on'); for (;;) setBack()`,
      `${path}-lock`,
      '1',
    ]);
    t.after(() => other.kill());
    await eventOf(other.stdout, 'data');
    const refusal = new StateUnavailable(
      `the state file ${path} cannot be written: its newest commit is not to be had, since processes keep opening it`,
    );
    // A write succeeds where the other process has to wait for a processor; it is kept like those before.
    const fault = await eventually(() => {
      const key = `d${kept.length}`;
      return put(area, key, 'kept').then(
        () => void kept.push(key),
        (error: unknown) => error,
      );
    });
    assert.deepEqual(fault, refusal);
    other.kill();
    await eventOf(other, 'exit');
    await put(area, 'e', 'kept');
    for (const key of [...kept, 'e']) assert.equal(await area.get(key), 'kept');
  });
});
