/** A crash at any step loses nothing that was acknowledged. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { bundle } from '../support/bundle.ts';
import { Disk } from './file-disk.ts';
import { contentOf, engineOn, folder, KEYS_EACH, started } from './file-setup.ts';

interface Writer {
  readonly child: ChildProcess;
  /** All that it has said. */
  said(): string;
  /** Resolves once it has said that; the test's time limit bounds the wait. */
  until(pattern: RegExp | ((said: string) => boolean)): Promise<void>;
  kill(): Promise<void>;
}

let program = '';
before(async () => {
  program = await bundle(fileURLToPath(new URL('file-writer.ts', import.meta.url)));
});

function writer(t: TestContext, path: string, round: number): Writer {
  const child = spawn(process.execPath, [program, path, `${round}`], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => {
    child.kill('SIGKILL');
    const [, pid] = /with child (\d+)\n/.exec(text) ?? [];
    if (pid !== undefined) process.kill(Number(pid));
  });
  const closed = once(child, 'close');
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  return {
    child,
    said: () => text,
    until: async (pattern) => {
      const isSo = () => (typeof pattern === 'function' ? pattern(text) : pattern.test(text));
      while (!isSo()) {
        assert.ok(child.exitCode === null, text);
        await Promise.race([once(child.stdout, 'data'), closed]);
      }
    },
    kill: async () => {
      child.kill('SIGKILL');
      await closed;
    },
  };
}

/** The number of the last change of each key that was acknowledged. */
function acknowledged(said: string): Map<string, number> {
  const acks = [...said.matchAll(/^ack (\S+) (\d+)\n/gm)];
  return new Map(acks.map(([, key = '', count]) => [key, Number(count)]));
}

/** Compares what is in a file with what a writer said that it has put there; returns how many keys that are. */
async function check(t: TestContext, path: string, round: number, said: string): Promise<number> {
  const { engine } = await started(t, path);
  const area = engine.area('a');
  const acks = acknowledged(said);
  for (const [key, count] of acks) {
    // The next change may be there already.
    const possible = [count, count + KEYS_EACH].map((number) => contentOf(`${round}`, number));
    assert.ok(possible.includes(await area.get(key)), `round ${round}, key ${key}, change ${count}`);
  }
  await engine.close();
  return acks.size;
}

const acks = (said: string) => said.split('ack ').length - 1;

describe('a process with a state file', () => {
  it('has lost nothing that it acknowledged, whenever it is killed', async (t) => {
    const path = join(await folder(t), 'state');
    let compacted = 0;
    for (let round = 0; round < 12; round++) {
      const running = writer(t, path, round);
      const enough = 1 + Math.floor(Math.random() * 1500);
      await running.until((said) => acks(said) > enough);
      await running.kill();
      if ((await stat(path)).size < enough * 4000) compacted++;
      assert.ok((await check(t, path, round, running.said())) > 0);
    }
    assert.ok(compacted > 0);
  });

  it('leaves a file that is refused once it has lost what was acknowledged', async (t) => {
    const path = join(await folder(t), 'state');
    const running = writer(t, path, 0);
    await running.until((said) => acks(said) > 40);
    await running.kill();
    const content = await readFile(path);
    // Beyond that may be what was not acknowledged yet.
    for (const part of [0.01, 0.1, 0.25, 0.5]) {
      await writeFile(path, content.subarray(0, Math.floor(content.length * part)));
      await assert.rejects(
        engineOn(path).engine.start(),
        /ends at byte \d+, and had \d+: restore it from a backup, or move/,
      );
    }
    await writeFile(path, content);
    assert.ok((await check(t, path, 0, running.said())) > 0);
  });

  it('keeps others out whoever has removed the lock file, and whenever it writes its file anew', async (t) => {
    const path = join(await folder(t), 'state');
    const running = writer(t, path, 0);
    await running.until((said) => acks(said) > 10);
    for (const enough of [20, 2000]) {
      await running.until((said) => acks(said) > enough);
      await rm(`${path}.lock`);
      const why = `settings.state: ${path} is in use by another process, whose ${path}.lock was removed`;
      await assert.rejects(engineOn(path).engine.start(), new Error(why));
    }
    assert.ok((await stat(path)).size < 2000 * 4000, 'it was written anew meanwhile');
    await running.kill();
    await check(t, path, 0, running.said());
  });

  it('keeps others out until it is killed', async (t) => {
    const path = join(await folder(t), 'state');
    const [first, second] = [writer(t, path, 0), writer(t, `${path}.other`, 1)];
    await Promise.all([first.until(/started/), second.until(/started/)]);
    const third = writer(t, path, 2);
    await third.until(/\n/);
    assert.equal(third.said(), `settings.state: ${path} is in use by another process (pid ${first.child.pid})\n`);
    await assert.rejects(engineOn(path).engine.start(), new RegExp(`by another process \\(pid ${first.child.pid}\\)`));
    await first.kill();
    // Its child lives on.
    assert.equal(process.kill(Number(/with child (\d+)\n/.exec(first.said())?.[1]), 0), true);
    await check(t, path, 0, first.said());
  });

  const limit = ({ child }: Writer, bytes: number | 'unlimited') => {
    const { status, stderr } = spawnSync('prlimit', ['--pid', `${child.pid}`, `--fsize=${bytes}:unlimited`]);
    assert.equal(status, 0, stderr.toString());
  };
  const skip = spawnSync('prlimit', ['--version']).status === 0 ? false : 'there is no prlimit';

  it('confirms nothing while the system takes no more, and all again once it does', { skip }, async (t) => {
    const path = join(await folder(t), 'state');
    const running = writer(t, path, 0);
    await running.until((said) => acks(said) > 50);
    limit(running, 100_000);
    await running.until(/refused/);
    const refusals = (said: string) => said.match(/^refused .*(?=\n)/gm) ?? [];
    await running.until((said) => refusals(said).length > 60);
    const said = running.said();
    assert.equal(acks(said.slice(said.indexOf('refused'))), 0);
    assert.deepEqual([...new Set(refusals(said))], [`refused the state file ${path} cannot be written: EFBIG`]);
    limit(running, 'unlimited');
    await running.until((now) => acks(now) > acks(said) + 50);
    await running.kill();
    assert.match(running.said(), /the state file cannot be written: what needs it is refused\n/);
    await check(t, path, 0, running.said());
  });
});

/** What may be in the file after a crash, and for each key what may then be its value. */
interface Crash {
  readonly content: Buffer | undefined;
  readonly possible: Map<string, ReadonlySet<string | undefined>>;
}

describe('a crash at any step', () => {
  it('takes nothing back that was acknowledged', async (t) => {
    const directory = await folder(t);
    const path = join(directory, 'state');
    const values = new Map(['a', 'b', 'c'].map((key) => [key, [undefined] as (string | undefined)[]]));
    const crashes = new Map<string, Crash>();
    const disk = new Disk(() => {
      const possible = new Map([...values].map(([key, list]) => [key, new Set(list)]));
      for (const content of disk.outcomes(path)) {
        const id =
          hash('sha1', content ?? 'none') +
          JSON.stringify([...values].map(([, list]) => list.map(String).map(({ length }) => length)));
        crashes.set(id, { content, possible });
      }
    });
    const { engine } = await started(t, path, { files: disk.files });
    const area = engine.area('x');
    const change = async (key: string, next: string | undefined) => {
      const list = values.get(key) ?? [];
      const before = list.at(-1);
      list.push(next);
      assert.equal(await area.compareAndSet(key, before, next, { durable: true }), undefined);
      // What was there before must not come back.
      list.splice(0, list.indexOf(next));
    };
    await change('a', '1');
    for (let round = 2; round < 9; round++) {
      const large = `${round}`.repeat(90_000 * round);
      await Promise.all([
        change('a', large),
        change('b', `b${round}`),
        change('c', round % 2 === 0 ? `c${round}` : undefined),
      ]);
    }
    await engine.close();
    assert.ok((await stat(path)).size < 2_000_000, 'it was written anew meanwhile');
    for (const [index, { content, possible }] of [...crashes.values()].entries()) {
      const copy = join(directory, `${index}`);
      if (content !== undefined) writeFileSync(copy, content);
      const found = engineOn(copy);
      await found.engine.start();
      for (const [key, set] of possible) {
        const value = await found.engine.area('x').get(key);
        assert.ok(set.has(value), `crash ${index}: ${key} is ${value?.slice(0, 20)}`);
      }
      await found.engine.close();
      rmSync(copy);
    }
  });
});
