import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { lstat, mkdir, unlink } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import type { LoadedConfig } from '../../config/index.ts';
import type { Operation, OperationResult } from '../../plugins-sdk/define.ts';
import { stateKey } from '../../plugins-sdk/keys.ts';
import type { Log } from '../../plugins-sdk/log.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import { codeOf, messageOf } from '../text.ts';
import { engineTypeOf } from './shared-state.ts';

/** What an operator asks for. */
export interface AskedOperation {
  readonly name: string;
  readonly words: Readonly<Record<string, string>>;
}

type Answer = { readonly results: readonly OperationResult[] } | { readonly error: string };

export type Operations = readonly (readonly [name: string, run: Operation])[];

/**
 * The socket on which the service of a config file takes operations: beside its state file, or else in a folder of its user among
 * the temporary files.
 */
export function controlPath(file: string, loaded: LoadedConfig): string {
  const chosen = stateKey.in(loaded.config);
  const [, type] = engineTypeOf(loaded) ?? [];
  const state = isRecord(chosen) ? type?.file?.(chosen) : undefined;
  if (state !== undefined) return `${resolve(dirname(file), state)}.control`;
  const name = createHash('sha256').update(resolve(file)).digest('hex').slice(0, 16);
  return join(tmpdir(), `signed-data-proxy-${process.getuid?.() ?? 0}`, `${name}.control`);
}

/** Has all plugins that know an operation do it. @throws Error */
export async function runOperation(operations: Operations, { name, words }: AskedOperation) {
  const known = operations.filter(([each]) => each === name);
  if (known.length === 0) throw new Error(`no plugin of this config knows "${name}"`);
  const results: OperationResult[] = [];
  for (const [, run] of known) results.push(...(await run(words)));
  return results;
}

/** Where operators of the same machine and user ask a running service for something. */
export class Control {
  readonly #path: string;
  readonly #log: Log;
  readonly #operations: () => Operations;
  #server: Server | undefined;

  constructor(path: string, log: Log, operations: () => Operations) {
    this.#path = path;
    this.#log = log;
    this.#operations = operations;
  }

  /** Listens, unless it does already or there is nothing to ask for. A service that cannot listen serves all the same. */
  async open(): Promise<void> {
    if (this.#server !== undefined || this.#operations().length === 0) return;
    try {
      await ownFolder(this.#path);
      this.#server = await listenAt(this.#path, (socket) => void this.#answer(socket));
    } catch (error) {
      const reason = messageOf(error);
      this.#log.warn('operators cannot reach this service by commands', { path: this.#path, reason });
    }
  }

  close(): void {
    this.#server?.close();
  }

  async #answer(socket: Socket): Promise<void> {
    // Whoever asked may have gone.
    socket.on('error', () => undefined);
    let answer: Answer;
    try {
      // All is read, and the other half of the connection stays.
      const asked = await text(socket.iterator({ destroyOnReturn: false }));
      answer = { results: await runOperation(this.#operations(), JSON.parse(asked)) };
    } catch (error) {
      answer = { error: messageOf(error) };
    }
    socket.end(JSON.stringify(answer));
  }
}

/** @returns what a running service answers; nothing where none listens. @throws Error for what it says or cannot say. */
export async function askControl(path: string, asked: AskedOperation): Promise<readonly OperationResult[] | undefined> {
  const socket = connect({ path, allowHalfOpen: true });
  try {
    await once(socket, 'connect');
  } catch (error) {
    if (['ENOENT', 'ECONNREFUSED'].includes(codeOf(error))) return undefined;
    throw new Error(`${path} cannot be asked (${codeOf(error)}): use the command as the user of the service`);
  }
  socket.end(JSON.stringify(asked));
  const said = await text(socket);
  if (said === '') throw new Error('the service has ended before it answered');
  const answer: Answer = JSON.parse(said);
  if ('error' in answer) throw new Error(answer.error);
  return answer.results;
}

/** Makes the folder of a socket among the temporary files, where others could have made it. @throws Error */
async function ownFolder(path: string): Promise<void> {
  const folder = dirname(path);
  if (dirname(folder) !== tmpdir()) return;
  await mkdir(folder, { mode: 0o700 }).catch((error) => {
    if (codeOf(error) !== 'EEXIST') throw error;
  });
  const about = await lstat(folder);
  if (!about.isDirectory() || about.uid !== process.getuid?.() || (about.mode & 0o077) !== 0)
    throw new Error(`${folder} is not a folder of this user alone: remove it`);
}

/** @returns nothing where another process of the service listens already. @throws Error */
async function listenAt(path: string, answer: (socket: Socket) => void): Promise<Server | undefined> {
  for (const isLast of [false, true]) {
    const server = createServer({ allowHalfOpen: true }, answer).unref();
    try {
      listenPrivately(server, path);
      await once(server, 'listening');
      return server;
    } catch (error) {
      if (codeOf(error) !== 'EADDRINUSE') throw error;
      if (isLast || (await isAlive(path))) return undefined;
      // Left behind by a process that was killed.
      await unlink(path);
    }
  }
  return undefined;
}

/** The socket is made at once, so that nothing else is made with this mask; a worker does not ask its primary to listen. */
function listenPrivately(server: Server, path: string): void {
  const mask = process.umask(0o177);
  try {
    server.listen({ path, exclusive: true });
  } finally {
    process.umask(mask);
  }
}

async function isAlive(path: string): Promise<boolean> {
  const socket = connect({ path });
  return once(socket, 'connect').then(
    () => socket.destroy() !== undefined,
    (error) => codeOf(error) !== 'ECONNREFUSED',
  );
}
