import { hash } from 'node:crypto';
import { once } from 'node:events';
import { lstat, mkdir, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { errorForLog } from '../kernel/refusal.ts';
import type { Operation, OperationResult } from '../plugins-sdk/define.ts';
import type { Log } from '../plugins-sdk/log.ts';
import { codeOf } from './text.ts';

/** An operation that an operator asks for, with its arguments by name. */
export interface AskedOperation {
  readonly name: string;
  readonly words: Readonly<Record<string, string>>;
}

type Answer = { readonly results: readonly OperationResult[] } | { readonly error: string };

/** The operations of all plugins, by name; several plugins may share a name. */
export type Operations = readonly (readonly [name: string, run: Operation])[];

/** The most bytes in the path of a socket on any system. Node 20 cuts longer paths silently, so that services would share one. */
const LONGEST_PATH = 103;

/** Milliseconds of silence after which a command gives up; a service at work sends a heartbeat more often. */
const SILENCE_TIMEOUT_MS = 5000;
const HEARTBEAT_INTERVAL_MS = 1000;

/** Error codes of a socket at which no process listens. */
const NOBODY: readonly string[] = ['ENOENT', 'ECONNREFUSED'];

/** The folder of the systemd unit's `RuntimeDirectory=`; commands look for the service there, too. */
const UNIT_FOLDER = '/run/signed-data-proxy';

/**
 * Returns the paths of the sockets at which the service of a config file may take operations; it listens at the first.
 * Under systemd the socket is in the runtime directory, because the service may have private temporary files.
 * Otherwise it is in a folder of its user among the temporary files.
 * @param file absolute path of the config file.
 */
export function controlPaths(file: string): readonly [own: string, ...others: string[]] {
  const name = `${hash('sha256', file).slice(0, 16)}.control`;
  const [runtime] = (process.env.RUNTIME_DIRECTORY ?? '').split(':');
  return runtime ? [join(runtime, name)] : [join(ownFolder(), name), join(UNIT_FOLDER, name)];
}

function ownFolder(): string {
  return join(tmpdir(), `signed-data-proxy-${process.getuid?.() ?? 0}`);
}

/** Runs an operation in all plugins that know it, one after the other. @throws Error when none does. */
export async function runOperation(operations: Operations, { name, words }: AskedOperation) {
  const known = operations.filter(([each]) => each === name);
  if (known.length === 0) throw new Error(`no plugin of this config knows "${name}"`);
  const results: OperationResult[] = [];
  for (const [, run] of known) results.push(...(await run(words)));
  return results;
}

/** Returns a listener for operations: commands on the same machine, run by the same user or root, connect to it. */
export function controlAt(path: string, log: Log, operations: () => Operations) {
  let server: Server | undefined;
  const unreachable = (error: unknown) =>
    log.warn('operators cannot reach this service by commands', { path, detail: errorForLog(error, 'message') });
  return {
    /**
     * Listens, unless it does already, was closed, or no plugin has an operation. A service that cannot listen serves all the
     * same. A socket that was removed, as cleaners of temporary files do, is made again.
     */
    open: async (): Promise<void> => {
      if (server?.listening === false || operations().length === 0) return;
      try {
        if (dirname(path) === ownFolder()) await mkdir(ownFolder(), { recursive: true, mode: 0o700 });
        const made = await listenAt(path, (socket) => void answer(socket, operations));
        // An error may also come later: without a free file descriptor no connection can be accepted.
        made?.on('error', unreachable);
        server = made ?? server;
      } catch (error) {
        unreachable(error);
      }
    },
    close: () => void server?.close(),
  };
}

async function answer(socket: Socket, operations: () => Operations): Promise<void> {
  // The command may have ended.
  socket.on('error', () => undefined);
  // A space is the heartbeat: JSON may begin with white space.
  const heartbeat = setInterval(() => socket.write(' '), HEARTBEAT_INTERVAL_MS).unref();
  let said: Answer;
  try {
    // The reading half has ended, but the answer needs the writing half.
    const asked = await text(socket.iterator({ destroyOnReturn: false }));
    said = { results: await runOperation(operations(), JSON.parse(asked)) };
  } catch (error) {
    said = { error: errorForLog(error, 'message') };
  } finally {
    clearInterval(heartbeat);
  }
  socket.end(JSON.stringify(said));
}

/**
 * Asks the running service to do an operation.
 * @returns its results; undefined when no service listens.
 * @throws Error with the service's message, or when it does not answer.
 */
export async function askControl(path: string, asked: AskedOperation): Promise<readonly OperationResult[] | undefined> {
  const socket = await reach(path);
  if (socket === undefined) return undefined;
  // The system accepts connections for a process that is stopped, so a connection does not mean that the service runs.
  const silent = `the service that listens at ${path} was silent for ${SILENCE_TIMEOUT_MS} ms: it is stopped or blocked. Have it go on, or end it, and look with "payments" before you try again: it may yet do what it was asked`;
  socket.setTimeout(SILENCE_TIMEOUT_MS, () => socket.destroy(new Error(silent)));
  socket.end(JSON.stringify(asked));
  const said = await text(socket);
  if (said.trim() === '') throw new Error('the service has ended before it answered');
  const answer: Answer = JSON.parse(said);
  if ('error' in answer) throw new Error(answer.error);
  return answer.results;
}

/** Connects to a service's socket; returns undefined when no process listens there. @throws Error */
async function reach(path: string): Promise<Socket | undefined> {
  try {
    await checkPlace(path);
    const socket = connect({ path, allowHalfOpen: true });
    await once(socket, 'connect');
    return socket;
  } catch (error) {
    const code = codeOf(error);
    if (NOBODY.includes(code)) return undefined;
    if (code === 'unknown') throw error;
    throw new Error(`${path} cannot be asked (${code}): use the command as the user of the service, or as root`);
  }
}

/**
 * Checks that a path is short enough for a socket, and that no other user can put one there: operations may hold keys
 * of nodes, and commands believe the answers. @throws Error
 */
async function checkPlace(path: string): Promise<void> {
  if (Buffer.byteLength(path) > LONGEST_PATH)
    throw new Error(`${path} is too long for a socket: set TMPDIR to a shorter path for service and command`);
  const folder = dirname(path);
  const about = await lstat(folder);
  // Any user could have made a folder of this name among the temporary files.
  const isOwn = folder !== ownFolder() || about.uid === process.getuid?.();
  if (!about.isDirectory() || !isOwn || (about.mode & 0o022) !== 0)
    throw new Error(
      `${folder} is not a folder of this user alone: remove it, or set TMPDIR to another folder for service and command`,
    );
}

/** Listens at a path; returns undefined where another process of the service listens already. @throws Error */
async function listenAt(path: string, answer: (socket: Socket) => void): Promise<Server | undefined> {
  const other = await reach(path);
  if (other !== undefined) return void other.destroy();
  // A process that was killed has left its socket behind.
  await rm(path, { force: true });
  const server = createServer({ allowHalfOpen: true }, answer).unref();
  // The socket gets mode 600. `listen` makes it at once, so the mask affects no other file.
  const mask = process.umask(0o177);
  try {
    // With `exclusive` a worker does not ask its primary to listen.
    server.listen({ path, exclusive: true });
  } finally {
    process.umask(mask);
  }
  await once(server, 'listening');
  return server;
}
