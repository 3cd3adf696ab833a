import assert from 'node:assert/strict';
import * as nodeFiles from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { TestContext } from 'node:test';
import { FileState, type FileStateOptions } from '../../builtins/state-file/file-state.ts';
import type { StateFiles } from '../../builtins/state-file/line-file.ts';
import type { StateArea } from '../../plugins-sdk/index.ts';

/** A folder of its own, removed after the test. */
export async function folder(t: Pick<TestContext, 'after'>): Promise<string> {
  const path = await nodeFiles.realpath(await nodeFiles.mkdtemp(join(tmpdir(), 'state-file-')));
  // A process that was killed may be writing yet.
  t.after(() => nodeFiles.rm(path, { recursive: true, force: true, maxRetries: 5 }));
  return path;
}

export interface Opened {
  readonly engine: FileState;
  /** What was logged: level, message and fields of each. */
  readonly logged: unknown[][];
}

export interface Given extends FileStateOptions {
  readonly now?: () => number;
}

/** An engine that is not started. */
export function engineOn(path: string, { now = Date.now, ...options }: Given = {}): Opened {
  const logged: unknown[][] = [];
  const at = (level: string) => (message: string, fields?: object) => {
    logged.push([level, message, ...(fields === undefined ? [] : [fields])]);
  };
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  const services = { log, now, path: (relative: string) => resolve(relative) };
  return { engine: new FileState(path, services, options), logged };
}

/** An engine that is closed after the test, if not before. */
export async function started(t: Pick<TestContext, 'after'>, path: string, given?: Given): Promise<Opened> {
  const opened = engineOn(path, given);
  await opened.engine.start();
  t.after(() => opened.engine.close().catch(() => undefined));
  return opened;
}

/** What the engine is about to do with which file. */
export type Look = (operation: string, path: string) => void | Promise<void>;

/** The file system, with a look at each operation before it is done, which may throw in its place. */
export function watched(look: Look): StateFiles {
  return {
    ...nodeFiles,
    open: async (path, flags, mode) => {
      await look('open', `${path}`);
      const handle = await nodeFiles.open(path, flags, mode);
      const [write, datasync, sync] = [
        handle.write.bind(handle),
        handle.datasync.bind(handle),
        handle.sync.bind(handle),
      ];
      return Object.assign(handle, {
        write: async (bytes: Uint8Array, from: number, length: number, at: number) => {
          await look('write', `${path}`);
          return write(bytes, from, length, at);
        },
        datasync: async () => {
          await look('datasync', `${path}`);
          return datasync();
        },
        sync: async () => {
          await look('sync', `${path}`);
          return sync();
        },
      });
    },
    rename: async (from, to) => {
      await look('rename', `${from}`);
      return nodeFiles.rename(from, to);
    },
  };
}

/** An error as the system gives it. */
export function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: by the test`), { code });
}

const DURABLE = { durable: true };

/** Swaps what stands under a key, whatever it is, for good. */
export async function put(area: StateArea, key: string, next: string | undefined): Promise<void> {
  assert.equal(await area.compareAndSet(key, await area.get(key), next, DURABLE), undefined);
}

/** What a change of the writer leaves, by its number; a key is deleted now and then. */
export function contentOf(round: string, count: number): string | undefined {
  return count % 23 === 22 ? undefined : `${round}.${count} ${'x'.repeat(4000)}`;
}

/** Keys that each of its loops changes one after the other. */
export const KEYS_EACH = 8;
