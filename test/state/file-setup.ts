import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { TestContext } from 'node:test';
import { LmdbState } from '../../builtins/state-file/lmdb-state.ts';
import type { Room } from '../../builtins/state-file/table.ts';
import type { StateArea } from '../../plugins-sdk/state.ts';
import { eventOf } from '../support/wait.ts';

/** A folder of its own, removed after the test. */
export async function folder(t: Pick<TestContext, 'after'>): Promise<string> {
  const path = await realpath(await mkdtemp(join(tmpdir(), 'state-file-')));
  // A process that was killed may be writing yet.
  t.after(() => rm(path, { recursive: true, force: true, maxRetries: 5 }));
  return path;
}

export interface Given {
  readonly now?: () => number;
  readonly room?: Room;
}

/** An engine that is not started. */
export function engineOn(path: string, { now = Date.now, room }: Given = {}): LmdbState {
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  return new LmdbState(path, { log, now, path: (relative) => resolve(relative) }, room);
}

/** An engine that is closed after the test, if not before. */
export async function started(t: Pick<TestContext, 'after'>, path: string, given?: Given): Promise<LmdbState> {
  const engine = engineOn(path, given);
  await engine.start();
  t.after(() => engine.close());
  return engine;
}

/** Swaps what stands under a key, whatever it is. */
export async function put(area: StateArea, key: string, next: string | undefined): Promise<void> {
  assert.equal(await area.compareAndSet(key, await area.get(key), next), undefined);
}

/**
 * A script that does to `…-lock`, its first argument, what a process that opens the file may do: it sets the number of the newest commit
 * back by its second argument. It is for another process: to close that file ends the locks of this one.
 */
export const SET_BACK = `
  const { openSync, readSync, writeSync } = require('node:fs');
  const [file, number] = [openSync(process.argv[1], 'r+'), new BigUint64Array(1)];
  readSync(file, number, 0, 8, 8);
  number[0] -= BigInt(process.argv[2]);
  const setBack = () => writeSync(file, number, 0, 8, 8);
  setBack();`;

/** A script that frees the lock for writing in `…-lock`, once a thread waits for it, and wakes none; for another process, too. */
export const FREE = `
  const { openSync, readSync, writeSync } = require('node:fs');
  const [file, lock] = [openSync(process.argv[1], 'r+'), new Uint32Array(1)];
  while (lock[0] < 2 ** 31) readSync(file, lock, 0, 4, 64);
  writeSync(file, new Uint32Array(1), 0, 4, 64);`;

/** Holds the lock of a state file for writing, and stops: the disk hangs for all others. */
const HOLD = `
  import { open } from ${JSON.stringify(import.meta.resolve('lmdb'))};
  open({ path: process.argv[1], noSubdir: true }).transactionSync(() => {
    console.log('held');
    process.kill(process.pid, 'SIGSTOP');
  });`;

/** Has the next write to a state file wait. @returns lets it go on. */
export async function held(path: string): Promise<() => Promise<void>> {
  const words = ['--input-type=module', '--eval', HOLD, path];
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  const gone = eventOf(child, 'exit');
  await eventOf(child.stdout, 'data');
  return async () => {
    child.kill('SIGKILL');
    await gone;
  };
}
