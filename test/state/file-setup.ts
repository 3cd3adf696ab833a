import * as nodeFiles from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { TestContext } from 'node:test';
import { FileState } from '../../builtins/state-file/file-state.ts';
import type { StateFiles } from '../../builtins/state-file/line-file.ts';

/** A folder of its own, removed after the test. */
export async function folder(t: Pick<TestContext, 'after'>): Promise<string> {
  const path = await nodeFiles.realpath(await nodeFiles.mkdtemp(join(tmpdir(), 'state-file-')));
  t.after(() => nodeFiles.rm(path, { recursive: true, force: true }));
  return path;
}

export interface Opened {
  readonly engine: FileState;
  /** What was logged: level, message and fields of each. */
  readonly logged: unknown[][];
}

export interface Given {
  readonly files?: StateFiles;
  readonly now?: () => number;
}

/** An engine that is not started. */
export function engineOn(path: string, { files = nodeFiles, now = Date.now }: Given = {}): Opened {
  const logged: unknown[][] = [];
  const at = (level: string) => (message: string, fields?: object) => {
    logged.push([level, message, ...(fields === undefined ? [] : [fields])]);
  };
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  const services = { log, now, path: (relative: string) => resolve(relative) };
  return { engine: new FileState(path, services, files), logged };
}

/** An engine that is closed after the test, if not before. */
export async function started(t: Pick<TestContext, 'after'>, path: string, given?: Given): Promise<Opened> {
  const opened = engineOn(path, given);
  await opened.engine.start();
  t.after(() => opened.engine.close().catch(() => undefined));
  return opened;
}
